import type { Written } from '../lib/parse-options.ts';
import type { Clock } from './clock.ts';
import type { ErasableStore, Ownership, Said } from './erasure.ts';
import type { Envelope, JournalEvent } from './event.ts';
import type { OpenProof } from './proof.ts';
import type { ObjectStore } from './storage.ts';
import type { IncomingMessage } from './ingest.ts';

/** One event on its way to one place inside a sink. */
export interface Delivery {
  readonly event: JournalEvent;
  /** The place inside the sink: an Event Hub, a topic, a folder. `null` is the sink's default. */
  readonly destination: string | null;
}

/**
 * What became of one delivery.
 * - `delivered`: the sink has it as durably as the sink promises; it will not be sent again.
 * - `held`: the sink has it on a disk of its own, from where it goes to its place later, many together. `until` resolves when
 *   it is there, and counts as `delivered` then; when it rejects, the delivery is lost to the sink and is sent again, read
 *   anew from the journal and behind what came after it. Until then it waits in the journal, so only sinks that run on a
 *   journal may answer so. The same promise for many deliveries costs least. What is held when the process ends is sent
 *   again at the next start: the sink must know it again, lest it be there twice.
 * - `retry`: nothing is wrong with the event; send it again, not before `delayMs` if the far side gave one.
 *   `sink: true` says the trouble is the sink's (down, throttled), so the dispatcher pauses the whole sink. A `delayMs` above
 *   an hour counts as an hour; one that is no number, or negative, as none. `untried: true` says that nothing was sent (its
 *   turn did not come): it does not count when the dispatcher decides whether the sink is down.
 * - `refused`: it can never succeed. With `batch: true` the far side refused the batch without saying which event is to
 *   blame; the dispatcher then halves the batch until it is one.
 */
export type SendResult =
  | { readonly status: 'delivered' }
  | { readonly status: 'held'; readonly until: Promise<void> }
  | {
      readonly status: 'retry';
      readonly reason: string;
      readonly delayMs?: number;
      readonly sink?: boolean;
      readonly untried?: boolean;
    }
  | { readonly status: 'refused'; readonly code: string; readonly reason: string; readonly batch?: boolean };

export const DELIVERED: SendResult = { status: 'delivered' };

/** Where an event lies that was too large for a sink, as the pointer's body says it. */
export interface ClaimCheck {
  /** Relative to the folder of the sink that keeps it, `/`-separated. */
  readonly path: string;
  /** Of the exact body, lower-case hex. */
  readonly sha256: string;
  /** Size of the exact body. */
  readonly bytes: number;
}

/**
 * Something that is wrong with a sink although it takes events: what it does after it has answered fails, or what it had
 * confirmed is gone. `status`, the console, `/readyz?verbose` and the metrics show it.
 */
export interface SinkTrouble {
  /** One word for machines, such as `unfinished`; `/readyz` and metrics show it to anyone. */
  readonly code: string;
  /** What is wrong, and what to do about it. No ids of users, no bodies. */
  readonly detail: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Records that were confirmed and are not there any more; absent: 0. */
  readonly lost?: number;
}

/** What `flush` has closed, and what it could not. */
export interface Flushed {
  /** The new files, by the name a reader opens: an absolute path, or a URL in a store. */
  readonly files: readonly { readonly file: string; readonly records: number }[];
  /** A line for each file that stays open, with the reason. */
  readonly failed: readonly string[];
}

/** What the dispatcher must respect when it calls `send`. Counts are events, sizes are body bytes. */
export interface SinkLimits {
  readonly batchCount: number;
  readonly batchBytes: number;
  /** Largest single body the sink can take; `Infinity` if it has no limit of its own. */
  readonly eventBytes: number;
  /** How many `send` calls may be running at once. */
  readonly inFlight: number;
  /** `user`: events of one user arrive in journal order, one batch in flight for a user. */
  readonly order: 'user' | 'none';
  /** `destination`: a batch holds one destination only. `mixed`: the sink sorts it out itself. */
  readonly batchBy: 'destination' | 'mixed';
  /**
   * Milliseconds from the start of one `send` to the start of the next, unless a full batch is waiting. For sinks that
   * pay by the call: an event that comes alone is still sent at once. Absent: 0.
   */
  readonly linger?: number;
  /** Milliseconds a `send` may take where that is more than `delivery.sendTimeout`: for sinks whose work is long. */
  readonly sendTimeout?: number;
}

/**
 * A configured target. Three verbs; batching, retry, bisecting, dead letters and order are the dispatcher's.
 *
 * The dispatcher promises: `open` resolves before the first `send`; a batch is never empty, never above `limits`, and
 * is not changed while `send` runs; no `send` starts after `close` is called.
 * The sink promises: `send` answers with exactly one result for each delivery, in order; it throws only when the whole
 * batch should be tried again; it answers `delivered` only for what survives a crash of this process; it does not keep
 * the batch after answering, nor change it; it gives up promptly when `signal` aborts.
 * A call that has not answered within `delivery.sendTimeout` has its signal aborted; a second later it counts as failed, its
 * answer is ignored whenever it comes, and the same is tried again: then two calls can be in flight. What such a call still
 * does to the far side can come after what followed it.
 */
export interface Sink {
  readonly limits: SinkLimits;
  /** Connects and probes only what it will do. Throws when the sink cannot work now; it may be called again. */
  open(signal: AbortSignal): Promise<void>;
  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]>;
  /**
   * Keeps one whole event under a path of its own, durably, for `oversize: claim-check` of other sinks. Keeping the same
   * event again gives the same path. Only sinks that can be read by path have it.
   */
  keep?(event: JournalEvent, signal: AbortSignal): Promise<ClaimCheck>;
  /**
   * Finishes the open files for which `holds` answers true, so that they can be rewritten by an erasure, and confirms what it
   * held in them: all of them before the sink is removed. Only sinks that keep files have it, and those that hold.
   */
  settle?(holds: (path: string) => Promise<boolean>): Promise<void>;
  /**
   * Closes every open file now, so that what `send` has confirmed can be read. Resolves when all that was open at the call
   * is closed or has failed; rejects when the sink cannot do it at all now. Only sinks that write files have it, also those that
   * leave none open: `millrace flush` waits for them.
   */
  flush?(): Promise<Flushed>;
  /** What an erasure has to clear beside the sink's files, such as the keys of sealed records; null while it is not open. */
  erasable?(): ErasableStore | null;
  /** What is wrong beside what `send` answers, oldest first. Cheap: it is asked each time somebody looks. */
  troubles?(): readonly SinkTrouble[];
  /**
   * What it has confirmed since its start without being able to act on it, by name, with how often. Few names: each is a
   * label of a metric. Cheap, like `troubles`.
   */
  skipped?(): Iterable<readonly [what: string, times: number]>;
  /** Flushes what is buffered, then releases every resource. Must settle soon after `signal` aborts. */
  close(signal: AbortSignal): Promise<void>;
}

/** What a sink is handed when it is made. */
export interface SinkContext {
  /** Its name in the config: `sinks.<name>`. */
  readonly name: string;
  readonly log: SinkLog;
  readonly clock: Clock;
  /** Absent where nothing runs that would deliver such events: in commands, and with `acknowledge: delivered`. */
  readonly inlet?: Inlet;
  /** What a sink signs with that keeps files; absent where nothing is to be proven. */
  readonly proof?: OpenProof;
  /**
   * For what `send` had answered `delivered` for and is there no more: each delivery becomes a dead letter, as far as the
   * journal still holds its event. Resolves with how many did; rejects when the journal cannot be written now. Absent where
   * nothing keeps events: in commands, and with `acknowledge: delivered`.
   */
  readonly takeBack?: (gone: TakenBack) => Promise<number>;
  /** Whether an event is of a user who has been erased: what a crash left of theirs is not written. Absent in commands that erase nobody. */
  readonly isErased?: (said: Ownership & Partial<Said>) => boolean;
  /** Opens a place for files by its URL, such as `s3://bucket/prefix`; absent where none can be used. */
  readonly openStore?: (url: string) => Promise<ObjectStore>;
}

/** Deliveries of one destination that are confirmed no more. */
export interface TakenBack {
  /** Of their events, ascending. */
  readonly seqs: readonly number[];
  readonly destination: string | null;
  /** Of the dead letters. */
  readonly code: string;
  readonly reason: string;
}

/** A way into the journal for events that a sink makes itself, to be routed like any other. */
export interface Inlet {
  /** Names of the envelope's fields in a body. */
  fields(): Readonly<Record<keyof Envelope, string>>;
  /**
   * Resolves once all of them are durable, or were before; rejects when one could not be stored, and all have to come
   * again.
   * @param source becomes the `source` of the events
   */
  take(source: string, batch: readonly IncomingMessage[]): Promise<void>;
}

/** The part of the logger that a sink may use. Never pass a body to it: bodies are health data. */
export interface SinkLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** For commands, which say what there is to say themselves. */
export const SILENT: SinkLog = { info: () => undefined, warn: () => undefined, error: () => undefined };

/**
 * What a configured sink is to the parts beside delivery: erasure, reconcile, claim checks, the rules of the config. All
 * of it is optional, and what is left out does not apply.
 */
export interface SinkDescription {
  /** Folders that the sink writes and no other part of the config may touch. */
  readonly folders?: readonly SinkFolder[];
  /** Folder of an archive (records and a manifest, as the files sink writes them): `reconcile` counts the events in it. */
  readonly archive?: string;
  /** The archive's records are sealed, and their keys lie here. */
  readonly keys?: SinkKeys;
  /**
   * What an erasure has to clear that is in no folder, such as rows of a database; it connects when it is told to erase,
   * whether the sink is open or not.
   */
  readonly erases?: () => ErasableStore;
  /** The sink has `keep`, and whoever reads a pointer can read what it keeps: `oversize: claim-check` may use it. */
  readonly keepsClaims?: boolean;
  /** The option that works only with a journal, and why. */
  readonly needsJournal?: { readonly option: string; readonly reason: string };
  /** The option by which events go out as the sender signed them, and so cannot be redacted. */
  readonly needsOriginal?: { readonly option: string };
  /** The only places that routes may name, null for the default one; absent: any. */
  readonly destinations?: readonly (string | null)[];
  /** How many files the sink may hold open at once; absent: few. */
  readonly openFiles?: number;
  /**
   * Packages that the sink loads when it opens, and that millrace may have been installed without: where one is missing,
   * the config is refused.
   */
  readonly packages?: readonly string[];
  /** Events go to standard output, so a command prints its results elsewhere. */
  readonly writesStdout?: boolean;
}

/** A folder of a sink. */
export interface SinkFolder {
  readonly path: string;
  /** The option that names it, dotted: `encrypt.store`. */
  readonly option: string;
  /** Whether data of users lies in it as NDJSON or kept events, which an erasure searches and rewrites. */
  readonly erase: boolean;
  /** It holds what is on its way to a store, and so do the folders beside it, which sinks of earlier configs have left. */
  readonly isSpool?: boolean;
}

/** Where the keys of sealed records are. */
export interface SinkKeys {
  /** Folder of the key store. */
  readonly store: string;
  /** The option with both, for messages. */
  readonly option: string;
  /** 32 bytes. Throws an Error when the option holds none. */
  masterKey(): Buffer;
}

/** What the rest of the config says that a sink may need. */
export interface ConfigAround {
  /** Files with table definitions: `tables`. */
  readonly tables: readonly string[];
  /** Folder beside the journal for what sinks gather before they send it on; absent or null where there is no journal. */
  readonly spool?: string | null;
}

/** A module that makes sinks of one type: the built-in ones and a user's own (`type: ./my-sink.js`) alike. */
export interface SinkModule<Options = unknown> {
  /** Checks what stands under `sinks.<name>` (without `type`) and fills in defaults; throws an Error that names the key. */
  parseOptions(options: unknown, around?: ConfigAround): Options;
  createSink(options: Options, context: SinkContext): Sink;
  /**
   * What the sink will be, told without I/O.
   * @param options as written, for commands describe a sink also where a `${…}` in another option cannot be resolved
   */
  describe?(options: Readonly<Record<string, unknown>>, around?: ConfigAround): SinkDescription;
  /** JSON Schema of the options as written: for suggestions after a typo, and for the defaults that `check` prints. */
  optionsSchema?(): Written;
}

/** What a config needs of such a module; what makes sinks is loaded for those that are made. */
export interface LazySinkModule extends Omit<SinkModule, 'createSink'> {
  load(): Promise<Pick<SinkModule, 'createSink'>>;
}
