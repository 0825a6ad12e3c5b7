import type { Clock } from './clock.ts';
import type { Written } from '../lib/parse-options.ts';
import type { IncomingMessage } from './ingest.ts';
import type { SinkDescription, SinkLog } from './sink.ts';

/** Keeps how far sources have read. */
export interface CheckpointStore {
  load(key: string): Promise<string | null>;
  save(key: string, value: string): Promise<void>;
}

/** Once it resolves, the messages are durable and may be acknowledged. */
export type Deliver = (batch: readonly IncomingMessage[]) => Promise<void>;

/**
 * A broker that events are read from. It acknowledges or checkpoints a message only after its `deliver` has resolved, and
 * delivers it again after a rejection. Order within a partition or key is kept.
 */
export interface Source {
  /** Connects. Throws when the source cannot be read now; may be called again. */
  open(signal: AbortSignal): Promise<void>;
  /** Reads until `signal` aborts; throws when the source has to be opened again. */
  run(deliver: Deliver, signal: AbortSignal): Promise<void>;
  close(signal: AbortSignal): Promise<void>;
}

export interface SourceContext {
  /** Its name in the config: `sources.<name>`. */
  readonly name: string;
  readonly log: SinkLog;
  readonly clock: Clock;
  readonly checkpoints: CheckpointStore;
}

export type SourceDescription = Pick<SinkDescription, 'needsJournal' | 'packages'>;

export interface SourceModule<Options = unknown> {
  /** Checks the options under `sources.<name>` (without `type`); throws an Error that names the key. */
  parseOptions(options: unknown): Options;
  createSource(options: Options, context: SourceContext): Source;
  /** @param options as written */
  describe?(options: Readonly<Record<string, unknown>>): SourceDescription;
  /** JSON Schema of the options as written. */
  optionsSchema?(): Written;
}

/** The part of a module that a config needs; the code that makes sources is loaded later. */
export interface LazySourceModule extends Omit<SourceModule, 'createSource'> {
  load(): Promise<Pick<SourceModule, 'createSource'>>;
}
