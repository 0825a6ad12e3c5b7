import { randomOf, type Name } from './seeded.ts';

/** What goes wrong on purpose, and how often: rates are shares of all requests, from 0 to 1. */
export interface FaultOptions {
  /** Users whose historical pulls fail for good. */
  readonly failingUsers?: number;
  /** Users whose historical pulls retry before they succeed. */
  readonly retryingUsers?: number;
  /** Users of the seed without a connection to any provider: the last ones. */
  readonly unconnectedUsers?: number;
  /** Users whose triggers are processed, but start no pull. */
  readonly leftOutUsers?: number;
  /** Users whose meals the service does not pull, although it pulls the rest. */
  readonly unpulledUsers?: number;
  /** So many bulk ops, the first, never start; the next are aborted halfway; the next fail halfway. */
  readonly stuckOps?: number;
  readonly abortedOps?: number;
  readonly failedOps?: number;
  readonly rate429?: number;
  readonly rate503?: number;
  /** Cut before or after the work is done, or amid the body. */
  readonly dropConnections?: number;
  /** Requests that are never answered. */
  readonly hangs?: number;
  /** Seconds in Retry-After. Default 1. */
  readonly retryAfter?: number;
}

/**
 * One thing that goes wrong with one request. `drop-before`: nothing was done; `drop-after`: it was done, but no answer
 * comes, and a long body is cut in its middle.
 */
export type Fault =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: unknown;
    }
  | { readonly kind: 'drop-before' | 'drop-after' | 'hang' };

/** Draws faults from the seed, request by request; `next` puts certain ones in front. */
export class Faults {
  readonly options: FaultOptions;
  readonly #random: () => number;
  readonly #queue: (Fault | null)[] = [];

  constructor(options: FaultOptions, seed: Name) {
    this.options = options;
    this.#random = randomOf(seed, 'faults');
  }

  /** The next requests meet these, in order; null is a request without a fault. */
  next(...faults: readonly (Fault | null)[]): void {
    this.#queue.push(...faults);
  }

  /** What befalls the request that has just come in; null is nothing. */
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

  /** Retry-After comes as seconds, as a date, or not at all. */
  #busy(status: number, detail: string, nowMs: number): Fault {
    const seconds = this.options.retryAfter ?? 1;
    const form = this.#random();
    const headers: Record<string, string> = {};
    if (form < 0.5) headers['retry-after'] = String(seconds);
    else if (form < 0.75) headers['retry-after'] = new Date(nowMs + seconds * 1000).toUTCString();
    return { kind: 'answer', status, headers, body: { detail } };
  }
}
