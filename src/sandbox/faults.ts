import { randomOf, type Name } from './seeded.ts';

/** Faults on purpose; rates are shares of all requests, from 0 to 1. */
export interface FaultOptions {
  /** Users whose historical pulls fail. */
  readonly failingUsers?: number;
  /** Users whose historical pulls retry before they succeed. */
  readonly retryingUsers?: number;
  /** Seeded users without a connection: the last ones. */
  readonly unconnectedUsers?: number;
  /** Users whose triggers start no pull. */
  readonly leftOutUsers?: number;
  /** Users of whom the service pulls all but meals. */
  readonly unpulledUsers?: number;
  /** The first bulk ops never start, the next are aborted halfway, the next fail halfway. */
  readonly stuckOps?: number;
  readonly abortedOps?: number;
  readonly failedOps?: number;
  readonly rate429?: number;
  readonly rate503?: number;
  /** Connections cut before or after the work is done, or inside a body. */
  readonly dropConnections?: number;
  /** Requests that are never answered. */
  readonly hangs?: number;
  /** Seconds in Retry-After. Default 1. */
  readonly retryAfter?: number;
}

/** A fault of one request. `drop-before`: nothing was done; `drop-after`: it was, and the answer is cut. */
export type Fault =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: unknown;
    }
  | { readonly kind: 'drop-before' | 'drop-after' | 'hang' };

/** Draws the fault of each request from the seed. */
export class Faults {
  readonly options: FaultOptions;
  readonly #random: () => number;
  readonly #queue: (Fault | null)[] = [];

  constructor(options: FaultOptions, seed: Name) {
    this.options = options;
    this.#random = randomOf(seed, 'faults');
  }

  /** Sets the faults of the next requests; null for none. */
  next(...faults: readonly (Fault | null)[]): void {
    this.#queue.push(...faults);
  }

  /** The fault of the next request; null for none. */
  draw(nowMs: number): Fault | null {
    const queued = this.#queue.shift();
    if (queued !== undefined) return queued;
    const { rate429 = 0, rate503 = 0, dropConnections = 0, hangs = 0 } = this.options;
    let dice = this.#random();
    const hit = (rate: number): boolean => (dice -= rate) < 0;
    if (hit(rate429)) return this.#busy(429, 'Too many requests', nowMs);
    if (hit(rate503)) return this.#busy(503, 'Service under stress', nowMs);
    if (hit(dropConnections)) return { kind: this.#random() < 0.5 ? 'drop-before' : 'drop-after' };
    return hit(hangs) ? { kind: 'hang' } : null;
  }

  /** With Retry-After in seconds, as a date, or without. */
  #busy(status: number, detail: string, nowMs: number): Fault {
    const seconds = this.options.retryAfter ?? 1;
    const form = this.#random();
    const headers: Record<string, string> = {};
    if (form < 0.5) headers['retry-after'] = String(seconds);
    else if (form < 0.75) headers['retry-after'] = new Date(nowMs + seconds * 1000).toUTCString();
    return { kind: 'answer', status, headers, body: { detail } };
  }
}
