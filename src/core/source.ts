import type { Clock } from './clock.ts';
import type { Written } from '../lib/parse-options.ts';
import type { IncomingMessage } from './ingest.ts';
import type { SinkDescription, SinkLog } from './sink.ts';

/** Where a source remembers how far it has read. */
export interface CheckpointStore {
  load(key: string): Promise<string | null>;
  save(key: string, value: string): Promise<void>;
}

/** Takes messages over; once it resolves they need not come again. */
export type Deliver = (batch: readonly IncomingMessage[]) => Promise<void>;

/**
 * Something events are read from. It promises to acknowledge or checkpoint a message only after the `deliver` that took
 * it has resolved; what `deliver` rejects comes again. Order within a partition or key is kept.
 */
export interface Source {
  /** Connects. Throws when the source cannot be read now; it may be called again. */
  open(signal: AbortSignal): Promise<void>;
  /** Reads until `signal` aborts, or throws when reading has to begin anew with `open`. */
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

/** What a configured source is to the parts beside it; what is left out does not apply. */
export type SourceDescription = Pick<SinkDescription, 'needsJournal' | 'packages'>;

export interface SourceModule<Options = unknown> {
  /** Checks what stands under `sources.<name>` (without `type`); throws an Error that names the key. */
  parseOptions(options: unknown): Options;
  createSource(options: Options, context: SourceContext): Source;
  /** What the source will be, by its options as written. */
  describe?(options: Readonly<Record<string, unknown>>): SourceDescription;
  /** JSON Schema of the options as written. */
  optionsSchema?(): Written;
}

/** What a config needs of such a module; what makes sources is loaded for those that are made. */
export interface LazySourceModule extends Omit<SourceModule, 'createSource'> {
  load(): Promise<Pick<SourceModule, 'createSource'>>;
}
