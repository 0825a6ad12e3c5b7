import type { Event, Handling } from './event.ts';

/** One message as a broker hands it over; nothing of it has been checked yet. */
export interface IncomingMessage {
  /** As it lies in the broker, compressed or not. */
  readonly body: Buffer;
  /** `gzip`, another encoding by the publisher's name for it, or null for none. */
  readonly encoding: string | null;
  /** Application properties or attributes, by the publisher's names (hyphens or underscores). */
  readonly properties: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch when the broker took it. */
  readonly receivedAt: number;
}

/** Why an event is not fit to route. All reasons are kept, not only the first. */
export interface InvalidReason {
  readonly code: string;
  readonly detail: string;
}

/** Whether an event is of a user whose data was erased. @param reasons why it is invalid; null when it is not */
export type IsErased = (event: Event, reasons?: readonly InvalidReason[] | null) => boolean;

/** Of an invalid event: what stands as its user is no id, and so says nothing of whose it is. */
export const USER_MALFORMED = 'user_malformed';

/** What tells a repetition is the source, the id and the bytes: an id that comes with other bytes is no repetition. */
export const ID_REUSED: InvalidReason = {
  code: 'id_reused',
  detail: 'an event with this id came before, with different bytes',
};

export type AppendResult =
  /** `seq` of one that went to quarantine: that of its entry in the log of receipts, 0 where it has none. */
  | { readonly status: 'accepted'; readonly seq: number }
  | { readonly status: 'duplicate' }
  /** Its id is known, with other bytes: it is in quarantine. */
  | { readonly status: 'reused'; readonly seq: number }
  /** Of a user whose data was erased: dropped, and counted. */
  | { readonly status: 'erased' };

/** What may be said of an event that comes in. */
export interface IngestOptions {
  readonly handling?: Handling | undefined;
  /** What stands for the id within the source; the event's id when left out. */
  readonly dedupKey?: string | undefined;
}

/**
 * The way in for events, of whatever source. What it has answered for is as durable as the config promises. Rejections
 * carry a MillraceError whose code has a status, such as `journal_full`.
 */
export interface Ingest {
  /**
   * Stores an event unless its source has sent the same key and bytes within the dedup window. With other bytes it goes
   * to quarantine.
   */
  accept(event: Event, options?: IngestOptions): Promise<AppendResult>;
  /** Keeps an authentic event that is not fit to route. `handling` is for those that are. */
  quarantine(event: Event, reasons: readonly InvalidReason[], options?: IngestOptions): Promise<AppendResult>;
}

/** What events end up in: the journal, or memory. */
export interface IngestStore extends Ingest {
  /** Counts an event of an erased user; nothing else of it is kept. */
  countErased(event: Event): Promise<AppendResult>;
}

/** Told of everything that has come in; its methods must be cheap and never throw. */
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

  // Looked at and handed on in one turn: an erasure either finds the event in flight, or it is dropped here.
  accept(event: Event, options?: IngestOptions): Promise<AppendResult> {
    const stored = this.#isErased(event)
      ? this.#store.countErased(event)
      : this.#store.accept(event, options);
    return stored.then((result) => {
      this.#observer.stored(event, result);
      return result;
    });
  }

  quarantine(
    event: Event,
    reasons: readonly InvalidReason[],
    options?: IngestOptions,
  ): Promise<AppendResult> {
    const stored = this.#isErased(event, reasons)
      ? this.#store.countErased(event)
      : this.#store.quarantine(event, reasons, options);
    return stored.then((result) => {
      this.#observer.storedInvalid(event, reasons, result);
      return result;
    });
  }
}
