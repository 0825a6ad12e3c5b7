import type { KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { BufferPool } from '../lib/buffer-pool.ts';
import type { Sought } from '../validate/envelope.ts';
import {
  type Checked,
  nextAfter,
  readChecked,
  sharedNow,
  sizeOf,
  type Unchecked,
  writeUnchecked,
} from './check-batch.ts';
import type { Delivery } from './delivery.ts';
import type { Stages } from './stages.ts';

/** What the thread goes by from then on. */
export interface CheckTerms extends Sought {
  readonly keys: readonly KeyObject[];
}

export interface CheckBatch {
  readonly bytes: ArrayBuffer;
  readonly count: number;
  /** By the clock that all threads share, milliseconds. */
  readonly sentAt: number;
}

export interface CheckedBatch extends Pick<CheckBatch, 'bytes'> {
  /** Milliseconds from when it was sent until all of it was checked. */
  readonly took: number;
}

/** Bytes of bodies that are worth the way to the thread and back, and of those that would hold up the others there. */
const LEAST = 4 * 1024;
const MOST = 512 * 1024;
/** With fewer deliveries at a time the receiving thread has the time for all of it. */
const MANY = 8;
/** Bytes that go to the thread without waiting for the end of the turn, and bytes of all bodies that are there at once. */
const FULL = 256 * 1024;
const AT_ONCE = 8 * 1024 * 1024;
/** Cores below which the thread would only take time from others. */
const LEAST_CORES = 4;
/**
 * What takes a thread with a core longer than this, for so many bytes, has waited for one; then there is no gain in a thread
 * for a while.
 */
const LATE_MS = 3;
const LEAST_BYTES_A_MS = 400_000;
const WITHOUT_MS = 1000;
/** For its short-lived objects, of which there are few. */
const YOUNG_MB = 4;

interface Job {
  /** Null for what is not worth the way, and only keeps its place. */
  readonly unchecked: Unchecked | null;
  /** Never throws. @param checked null when nothing was looked at */
  readonly proceed: (checked: Checked | null) => void;
}

interface Batch {
  readonly jobs: readonly Job[];
  readonly names: number;
  /** Milliseconds that it may take. */
  readonly most: number;
}

/**
 * Has a thread compare the signatures of large bodies and look through them, while many deliveries come in: at 10 KB that
 * is a fifth of what the receiving thread has to do. While bodies are there, whatever comes after them waits, so that
 * deliveries go on in the order in which they came.
 *
 * Modes: idle → starting, with the first body that is worth it → running. Each → ended, by `close` or when the thread dies: all
 * that waits goes on unchecked, and everything is done here from then on. Where the thread does not get a core it is left
 * alone for a while.
 */
export class Checker {
  readonly #onError: (error: unknown) => void;
  #mode: 'idle' | 'starting' | 'running' | 'ended';
  #worker: Worker | null = null;
  /** Whose terms the thread has. */
  #terms: Pick<Stages, 'verifier' | 'validate'> | null = null;
  #names = 0;
  #gathered: Job[] = [];
  #gatheredBytes = 0;
  /** With the thread, in order. */
  readonly #batches: Batch[] = [];
  #bytesThere = 0;
  #isScheduled = false;
  /** Until then the thread gets nothing; by the clock of `now`. */
  #withoutUntil = Number.NEGATIVE_INFINITY;
  readonly #now: () => number;
  readonly #buffers = new BufferPool();

  /**
   * @param cores fewer than four: there is no thread
   * @param now as the thread reads it
   */
  constructor(onError: (error: unknown) => void, cores = availableParallelism(), now = sharedNow) {
    this.#onError = onError;
    this.#now = now;
    this.#mode = cores < LEAST_CORES ? 'ended' : 'idle';
  }

  /**
   * Takes a delivery whose body is complete, to go on with it later.
   * @param inFlight deliveries that have begun
   * @returns false when it is to go on now
   */
  take(delivery: Delivery, body: Buffer, inFlight: number, proceed: Job['proceed']): boolean {
    if (this.#mode === 'ended') return false;
    const isWorth = body.length >= LEAST && body.length <= MOST && inFlight >= MANY;
    const isFirst = this.#gathered.length === 0 && this.#batches.length === 0;
    const unchecked = isWorth ? this.#uncheckedOf(delivery, body) : null;
    if (isFirst && unchecked === null) return false;
    this.#gathered.push({ unchecked, proceed });
    this.#gatheredBytes += unchecked === null ? 0 : sizeOf(unchecked, this.#names);
    if (this.#gatheredBytes >= FULL) this.#send();
    else this.#schedule();
    return true;
  }

  /** What the thread is to do; null when it cannot, or not now. */
  #uncheckedOf({ stages, request, examined }: Delivery, body: Buffer): Unchecked | null {
    const { comparing } = stages.verifier;
    const { sought } = stages.validate;
    if (comparing === undefined || sought === undefined) return null;
    if (this.#mode === 'idle') this.#start();
    if (this.#now() < this.#withoutUntil) return null;
    if (this.#mode !== 'running' || this.#bytesThere + this.#gatheredBytes >= AT_ONCE) return null;
    const text = comparing.signedText(request.headers, examined.receivedAt);
    if (text === null) return null;
    if (this.#terms?.verifier !== stages.verifier || this.#terms.validate !== stages.validate)
      this.#adopt(stages, { keys: comparing.keys, ...sought });
    return { ...text, body };
  }

  /** All that waits goes on. */
  async close(): Promise<void> {
    const worker = this.#worker;
    this.#end();
    await worker?.terminate();
  }

  #start(): void {
    this.#mode = 'starting';
    const program = import.meta.url.endsWith('.ts') ? './checking-thread.ts' : './checking-thread.js';
    const worker = new Worker(new URL(program, import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    // It keeps no process from its end.
    worker.unref();
    this.#worker = worker;
    worker.on('message', (message: 'ready' | CheckedBatch) => {
      if (message !== 'ready') this.#receive(message);
      else if (this.#mode === 'starting') this.#mode = 'running';
    });
    worker.on('error', (error) => {
      this.#onError(error);
      this.#end();
    });
    worker.on('exit', () => this.#end());
  }

  #adopt({ verifier, validate }: Stages, terms: CheckTerms): void {
    // What is gathered goes by the terms of before.
    this.#send();
    this.#terms = { verifier, validate };
    this.#names = terms.names.length;
    this.#worker?.postMessage(terms, []);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#gathered.length === 0) return;
    const jobs = this.#gathered;
    const buffer = this.#buffers.take(this.#gatheredBytes);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    let at = 0;
    let count = 0;
    for (const { unchecked } of jobs) {
      if (unchecked === null) continue;
      at = writeUnchecked(buffer, at, unchecked, this.#names);
      count += 1;
    }
    const bytes = buffer.buffer as ArrayBuffer;
    this.#bytesThere += bytes.byteLength;
    const most = LATE_MS + this.#bytesThere / LEAST_BYTES_A_MS;
    this.#batches.push({ jobs, names: this.#names, most });
    this.#worker?.postMessage({ bytes, count, sentAt: this.#now() } satisfies CheckBatch, [bytes]);
  }

  #receive(message: CheckedBatch): void {
    const batch = this.#batches.shift();
    const bytes = Buffer.from(message.bytes);
    if (batch !== undefined && message.took > batch.most) this.#withoutUntil = this.#now() + WITHOUT_MS;
    this.#bytesThere -= bytes.length;
    let at = 0;
    for (const { unchecked, proceed } of batch?.jobs ?? []) {
      if (unchecked === null) proceed(null);
      else {
        const from = at;
        at = nextAfter(bytes, at);
        proceed(readChecked(bytes, from, batch?.names ?? 0));
      }
    }
    this.#buffers.give(bytes);
  }

  #end(): void {
    if (this.#mode === 'ended') return;
    this.#mode = 'ended';
    const waiting = [...this.#batches.splice(0).flatMap(({ jobs }) => jobs), ...this.#gathered.splice(0)];
    for (const { proceed } of waiting) proceed(null);
  }
}
