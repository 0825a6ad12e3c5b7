import { Worker } from 'node:worker_threads';
import { messageOf } from '../core/errors.ts';
import type { Notes } from './noted-spans.ts';
import type { Order, Report, SpanNote } from './span-note.ts';

export type Warn = (detail: object, message: string) => void;

/** Notes that cross together, and milliseconds after which fewer do. */
const TOGETHER = 64;
const GATHER_MS = 100;
/** Milliseconds that a stop waits for a collector. */
const STOP_WITHIN = 2000;
/** Milliseconds between two lines about spans that are dropped. */
const TELL_EVERY = 60_000;
/** For short-lived objects of the thread, as in our other threads. */
const YOUNG_MB = 16;
const PROGRAM = new URL(
  import.meta.url.endsWith('.ts') ? './exporter-thread.ts' : './exporter-thread.js',
  import.meta.url,
);

export interface ExporterOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Spans that may wait, here and in the thread; what comes beyond that is dropped. */
  readonly room: number;
  readonly warn: Warn;
  /** The thread cannot load what it exports with. */
  readonly onUnable: (error: string) => void;
  /** Another thread than ours: takes each `Order`, posts `Report`s. */
  readonly program?: URL;
}

/**
 * The thread that exports spans, seen from one that notes them. Nothing waits for it, whatever becomes of it: what finds no room
 * is dropped, and the log says how much.
 *
 * Modes: running → ended, by `stop` or when the thread cannot export or dies: then nothing is noted any more.
 */
export class Exporter implements Notes {
  readonly #options: ExporterOptions;
  readonly #worker: Worker;
  readonly #stopped = Promise.withResolvers<void>();
  #mode: 'running' | 'ended' = 'running';
  #gathered: SpanNote[] = [];
  /** Noted, and not yet exported or given up by the thread. */
  #waiting = 0;
  /** Not told yet. */
  #dropped = 0;
  #gathering: NodeJS.Timeout | undefined;
  #telling: NodeJS.Timeout | undefined;

  constructor(options: ExporterOptions) {
    const { program = PROGRAM, env } = options;
    this.#options = options;
    this.#worker = new Worker(program, { env, resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    this.#worker.unref();
    this.#worker.on('message', (report: Report) => this.#hear(report));
    this.#worker.on('error', (error) => this.#died(messageOf(error)));
    this.#worker.on('exit', (code) => this.#died(`it ended with code ${code}`));
  }

  get hasEnded(): boolean {
    return this.#mode === 'ended';
  }

  add(note: SpanNote): void {
    if (this.#mode === 'ended') return;
    if (this.#waiting >= this.#options.room) {
      this.#dropped += 1;
      if (this.#telling === undefined) this.#tell();
      return;
    }
    this.#waiting += 1;
    this.#gathered.push(note);
    if (this.#gathered.length >= TOGETHER) this.#handOver();
    else this.#gathering ??= setTimeout(() => this.#handOver(), GATHER_MS).unref();
  }

  /** Sends what is left, for a moment. */
  async stop(): Promise<void> {
    if (this.#mode === 'running') {
      this.#handOver();
      this.#worker.postMessage('stop' satisfies Order, []);
      const over = setTimeout(() => this.#stopped.resolve(), STOP_WITHIN);
      await this.#stopped.promise;
      clearTimeout(over);
      if (this.#end() > 0) this.#warnOfDropped();
    }
    await this.#worker.terminate();
  }

  #handOver(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    const notes = this.#gathered;
    this.#gathered = [];
    if (notes.length > 0) this.#worker.postMessage(notes satisfies Order, []);
  }

  #hear(report: Report): void {
    if (report === 'stopped') this.#stopped.resolve();
    else if ('settled' in report) this.#waiting -= report.settled;
    else if ('warning' in report) this.#options.warn(report.detail, report.warning);
    else if (this.#mode === 'running') {
      this.#end();
      this.#options.onUnable(report.unable);
    }
  }

  #died(error: string): void {
    this.#stopped.resolve();
    if (this.#mode === 'ended') return;
    const dropped = this.#end();
    this.#options.warn(
      { error, dropped },
      'the thread that exports traces died: there are none until the next start',
    );
  }

  /** The first at once, then at most a line a minute with what has gathered. */
  #tell(): void {
    this.#telling = undefined;
    if (this.#dropped === 0) return;
    this.#warnOfDropped();
    this.#telling = setTimeout(() => this.#tell(), TELL_EVERY).unref();
  }

  #warnOfDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#options.warn({ dropped }, 'spans are dropped: more come than are exported');
  }

  /** @returns spans that were never exported, and not told of */
  #end(): number {
    this.#mode = 'ended';
    clearTimeout(this.#gathering);
    clearTimeout(this.#telling);
    this.#gathered = [];
    this.#dropped += this.#waiting;
    this.#waiting = 0;
    return this.#dropped;
  }
}
