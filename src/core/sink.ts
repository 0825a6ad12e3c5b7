import type { Written } from '../lib/parse-options.ts';
import type { Clock } from './clock.ts';
import type { ErasableStore, Ownership, Said } from './erasure.ts';
import type { Envelope, JournalEvent } from './event.ts';
import type { OpenProof } from './proof.ts';
import type { ObjectStore } from './storage.ts';
import type { IncomingMessage } from './ingest.ts';

/** One event for one destination of a sink. */
export interface Delivery {
  readonly event: JournalEvent;
  /** An Event Hub, a topic, a folder; null for the sink's default. */
  readonly destination: string | null;
}

/**
 * The result of one delivery.
 * - `delivered`: the sink has it as durably as the sink promises; it is not sent again.
 * - `held`: the sink has it on its own disk, and delivers it later, many together. When `until` resolves, it is delivered; when
 *   `until` rejects, it is read from the journal again and sent behind later events. Only sinks that run on a journal may
 *   answer so. One promise for many deliveries costs least. After a restart of the process all that was held is sent again, and
 *   the sink must recognise it.
 * - `retry`: nothing is wrong with the event; send it again, not before `delayMs` if the server asked for a wait (at most an
 *   hour; not a number, or negative: none). `sink: true`: the sink itself is in trouble (down, throttled), and is paused.
 *   `untried: true`: the event was not sent at all, and does not count when `downAfter` is checked.
 * - `refused`: it can never succeed. `batch: true`: the server refused the batch without saying which event is to blame; it
 *   is then halved until one event is sent alone.
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

/** Where an event is kept that is too large for a sink: the body of the pointer that the sink gets instead. */
export interface ClaimCheck {
  /** Relative to the folder of the sink that keeps it, `/`-separated. */
  readonly path: string;
  /** Of the exact body, lower-case hex. */
  readonly sha256: string;
  /** Of the exact body. */
  readonly bytes: number;
}

/**
 * A fault of a sink that still accepts events: its work after the answer fails, or records that it had confirmed are gone.
 * `status`, the console, `/readyz?verbose` and the metrics show it.
 */
export interface SinkTrouble {
  /** One word for machines, such as `unfinished`; `/readyz` and metrics show it to anyone. */
  readonly code: string;
  /** What is wrong, and what to do. No ids of users, no bodies. */
  readonly detail: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Confirmed records that are gone; absent: 0. */
  readonly lost?: number;
}

/** The files that `flush` has closed, and those that it could not close. */
export interface Flushed {
  /** Absolute paths, or URLs in a store. */
  readonly files: readonly { readonly file: string; readonly records: number }[];
  /** A line for each file that stays open, with the reason. */
  readonly failed: readonly string[];
}

/** Limits of each `send`. Counts are events, sizes are body bytes. */
export interface SinkLimits {
  readonly batchCount: number;
  readonly batchBytes: number;
  /** Largest body that the sink accepts; `Infinity` without a limit. */
  readonly eventBytes: number;
  /** How many `send` calls may be running at once. */
  readonly inFlight: number;
  /** `user`: events of one user arrive in journal order, one batch in flight for a user. */
  readonly order: 'user' | 'none';
  /** `destination`: a batch has one destination only. `mixed`: it may have several. */
  readonly batchBy: 'destination' | 'mixed';
  /**
   * For sinks that pay by the call: milliseconds from the start of one `send` to the next, unless a full batch waits. An event
   * that comes alone is sent at once. Absent: 0.
   */
  readonly linger?: number;
  /** For sinks whose work is long: milliseconds that a `send` may take, where `delivery.sendTimeout` is less. */
  readonly sendTimeout?: number;
}

/**
 * A configured target. Batching, retries, halving, dead letters and order are the dispatcher's.
 *
 * The dispatcher promises: `open` resolves before the first `send`; a batch is never empty, never above `limits`, and
 * is not changed while `send` runs; no `send` starts after `close` is called.
 * The sink promises: `send` answers with exactly one result for each delivery, in order; it throws only when the whole
 * batch should be sent again; it answers `delivered` only for what survives a crash of this process; it neither changes the
 * batch nor keeps it after answering; it ends soon after `signal` aborts.
 * The signal of a call that has not answered within `delivery.sendTimeout` is aborted. A second later the call counts as failed,
 * its answer is ignored, and the batch is sent again: then two calls can be in flight, and the first may still have effects.
 */
export interface Sink {
  readonly limits: SinkLimits;
  /**
   * Connects, and probes only what the sink will do. Throws when the sink cannot work now: it is called again, with
   * pauses, until it has resolved once, and never after that; `send` connects again by itself.
   */
  open(signal: AbortSignal): Promise<void>;
  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]>;
  /** Keeps one whole event durably, for `oversize: claim-check` of other sinks. The same event again gives the same path. */
  keep?(event: JournalEvent, signal: AbortSignal): Promise<ClaimCheck>;
  /**
   * Closes the open files for which `holds` answers true, so that an erasure can rewrite them, and confirms what it held in
   * them. For sinks that keep files, or answer `held`.
   */
  settle?(holds: (path: string) => Promise<boolean>): Promise<void>;
  /**
   * Closes every open file now, so that what `send` has confirmed can be read. Resolves when each is closed or has failed;
   * rejects when the sink cannot close any now. For all sinks that write files: `millrace flush` waits for them.
   */
  flush?(): Promise<Flushed>;
  /** What an erasure clears beside the sink's files, such as the keys of sealed records; null while the sink is not open. */
  erasable?(): ErasableStore | null;
  /** Oldest first. Must be cheap: every status calls it. */
  troubles?(): readonly SinkTrouble[];
  /**
   * Events that the sink has confirmed since its start without acting on them: why, and how many. Few names: each is a label
   * of a metric. Must be cheap.
   */
  skipped?(): Iterable<readonly [what: string, times: number]>;
  /** When the newest event was received that the sink has written into each table since its start, in ms. Must be cheap. */
  newest?(): Iterable<readonly [table: string, receivedAt: number]>;
  /** Flushes what is buffered, then releases every resource. Must settle soon after `signal` aborts. */
  close(signal: AbortSignal): Promise<void>;
}

/** What a sink gets when it is made. */
export interface SinkContext {
  /** Its name in the config: `sinks.<name>`. */
  readonly name: string;
  readonly log: SinkLog;
  readonly clock: Clock;
  /** Absent in commands, and with `acknowledge: delivered`. */
  readonly inlet?: Inlet;
  /** Signs what a sink of files writes; absent where nothing is signed. */
  readonly proof?: OpenProof;
  /**
   * Makes dead letters of deliveries that were confirmed and are gone, as far as the journal still has their events. Resolves
   * with how many; rejects when the journal cannot be written now. Absent in commands, and with `acknowledge: delivered`.
   */
  readonly takeBack?: (gone: TakenBack) => Promise<number>;
  /** Whether an event is of an erased user: such a record that a crash left is not written. */
  readonly isErased?: (said: Ownership & Partial<Said>) => boolean;
  /** Opens an object store by its URL, such as `s3://bucket/prefix`; absent where none can be used. */
  readonly openStore?: (url: string) => Promise<ObjectStore>;
}

/** Confirmed deliveries of one destination that are gone. */
export interface TakenBack {
  /** Ascending. */
  readonly seqs: readonly number[];
  readonly destination: string | null;
  readonly code: string;
  readonly reason: string;
}

/** Puts events that a sink makes into the journal, where they are routed like any other. */
export interface Inlet {
  /** Names of the envelope's fields in a body. */
  fields(): Readonly<Record<keyof Envelope, string>>;
  /**
   * Resolves once all of them are durable; rejects when one could not be stored: then the caller sends all again.
   * @param source becomes the `source` of the events
   */
  take(source: string, batch: readonly IncomingMessage[]): Promise<void>;
}

/** Never pass it a body: bodies are health data. */
export interface SinkLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** For commands, which print what happens themselves. */
export const SILENT: SinkLog = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** What erasure, reconcile, claim checks and the rules of the config need to know of a configured sink. */
export interface SinkDescription {
  /** Folders that only this sink writes. */
  readonly folders?: readonly SinkFolder[];
  /** Folder of an archive, as the files sink writes it: `reconcile` counts its events. */
  readonly archive?: string;
  /** Present when the archive's records are sealed. */
  readonly keys?: SinkKeys;
  /** What an erasure clears outside of folders, such as rows of a database; it connects by itself when it erases. */
  readonly erases?: () => ErasableStore;
  /** `oversize: claim-check` may use the sink: it has `keep`, and readers of a pointer can read what it keeps. */
  readonly keepsClaims?: boolean;
  /** The option that works only with a journal, and why. */
  readonly needsJournal?: { readonly option: string; readonly reason: string };
  /** The option that sends events as they were signed, so that routes cannot redact them. */
  readonly needsOriginal?: { readonly option: string };
  /** The only destinations that routes may name, null for the default; absent: any. */
  readonly destinations?: readonly (string | null)[];
  /** Most files open at once; absent: few. */
  readonly openFiles?: number;
  /** Optional packages that the sink loads when it opens; where one is not installed, the config is refused. */
  readonly packages?: readonly string[];
  /** Events go to stdout, so that a command prints its results elsewhere. */
  readonly writesStdout?: boolean;
}

export interface SinkFolder {
  readonly path: string;
  /** The option that names it, such as `encrypt.store`. */
  readonly option: string;
  /** Whether an erasure searches and rewrites it: it holds data of users as NDJSON or kept events. */
  readonly erase: boolean;
  /** It holds files that are not in the store yet, and so do folders of earlier sinks beside it. */
  readonly isSpool?: boolean;
}

export interface SinkKeys {
  /** Folder of the key store. */
  readonly store: string;
  /** The option that has both, for messages. */
  readonly option: string;
  /** 32 bytes. Throws an Error when the option holds none. */
  masterKey(): Buffer;
}

/** Values from the rest of the config that a sink may need. */
export interface ConfigAround {
  /** Files with table definitions: `tables`. */
  readonly tables: readonly string[];
  /** Folder beside the journal where sinks gather records for a store; absent or null without a journal. */
  readonly spool?: string | null;
}

/** A module that makes sinks of one type, built-in or a user's own (`type: ./my-sink.js`). */
export interface SinkModule<Options = unknown> {
  /** Checks the options under `sinks.<name>` (without `type`) and adds defaults; throws an Error that names the key. */
  parseOptions(options: unknown, around?: ConfigAround): Options;
  createSink(options: Options, context: SinkContext): Sink;
  /**
   * Describes the sink without I/O.
   * @param options as written: a `${…}` in them may not be resolved
   */
  describe?(options: Readonly<Record<string, unknown>>, around?: ConfigAround): SinkDescription;
  /** JSON Schema of the options, for suggestions after a typo and for the defaults that `check` prints. */
  optionsSchema?(): Written;
}

/** The part of a module that a config needs; the code that makes sinks is loaded later. */
export interface LazySinkModule extends Omit<SinkModule, 'createSink'> {
  load(): Promise<Pick<SinkModule, 'createSink'>>;
}
