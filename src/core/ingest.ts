import type { Event, Handling } from './event.ts';

/** One message of a broker, unchecked. */
export interface IncomingMessage {
  /** As the publisher sent it, compressed or not. */
  readonly body: Buffer;
  /** Content encoding, such as `gzip`; null for none. */
  readonly encoding: string | null;
  /** Application properties or attributes; their names have hyphens or underscores. */
  readonly properties: Readonly<Record<string, string>>;
  /** When the broker received it, milliseconds since the epoch. */
  readonly receivedAt: number;
}

/** One reason why an event is invalid. */
export interface InvalidReason {
  readonly code: string;
  readonly detail: string;
}

/** Whether an event is of an erased user. @param reasons why it is invalid; null for a valid event */
export type IsErased = (event: Event, reasons?: readonly InvalidReason[] | null) => boolean;

/** Code of an invalid event whose user field is not an id, so that its user is unknown. */
export const USER_MALFORMED = 'user_malformed';

/** A repetition has the same source, id and bytes. */
export const ID_REUSED: InvalidReason = {
  code: 'id_reused',
  detail: 'an event with this id came before, with different bytes',
};

/** Why the body of a message from a broker cannot be read. */
export const ENCODING_DETAIL = {
  encoding_unknown: 'the content encoding is not known',
  encoding_broken: 'the body cannot be decompressed within the limit',
} as const;

export type AppendResult =
  /** `seq` of a quarantined event: that of its entry in the log of receipts; 0 without one. */
  | { readonly status: 'accepted'; readonly seq: number }
  | { readonly status: 'duplicate' }
  /** The id is known with other bytes: the event is quarantined. */
  | { readonly status: 'reused'; readonly seq: number }
  /** Of an erased user: dropped and counted. */
  | { readonly status: 'erased' };

export interface IngestOptions {
  readonly handling?: Handling | undefined;
  /** Identifies repetitions within the source; by default the event's id. */
  readonly dedupKey?: string | undefined;
}

/**
 * Takes in events of every source. Once it has resolved, an event is as durable as the config promises. It rejects with a
 * MillraceError whose code has an HTTP status, such as `journal_full`.
 */
export interface Ingest {
  /** Stores an event, unless it is a repetition within the dedup window. With a known key and other bytes it is quarantined. */
  accept(event: Event, options?: IngestOptions): Promise<AppendResult>;
  /** Keeps an authentic, invalid event. `handling` is ignored. */
  quarantine(event: Event, reasons: readonly InvalidReason[], options?: IngestOptions): Promise<AppendResult>;
}

export interface IngestStore extends Ingest {
  /** Counts an event of an erased user, and keeps nothing of it. */
  countErased(event: Event): Promise<AppendResult>;
}

/** Counts what has come in; its methods must be cheap and never throw. */
export interface IngestObserver {
  stored(event: Event, result: AppendResult): void;
  storedInvalid(event: Event, reasons: readonly InvalidReason[], result: AppendResult): void;
}

/** Keeps events of erased users out of a store, and counts what comes in. */
export class GuardedIngest implements Ingest {
  readonly #store: IngestStore;
  readonly #isErased: IsErased;
  readonly #observer: IngestObserver;

  constructor(store: IngestStore, isErased: IsErased, observer: IngestObserver) {
    this.#store = store;
    this.#isErased = isErased;
    this.#observer = observer;
  }

  // Checked and handed on in one turn: an erasure finds the event in flight, or it is dropped here.
  async accept(event: Event, options?: IngestOptions): Promise<AppendResult> {
    const result = await (this.#isErased(event)
      ? this.#store.countErased(event)
      : this.#store.accept(event, options));
    this.#observer.stored(event, result);
    return result;
  }

  async quarantine(
    event: Event,
    reasons: readonly InvalidReason[],
    options?: IngestOptions,
  ): Promise<AppendResult> {
    const result = await (this.#isErased(event, reasons)
      ? this.#store.countErased(event)
      : this.#store.quarantine(event, reasons, options));
    this.#observer.storedInvalid(event, reasons, result);
    return result;
  }
}
