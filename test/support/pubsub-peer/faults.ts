import type { status } from '@grpc/grpc-js';
import type { PeerMessage } from './topics.ts';

/**
 * What can go wrong with a publish request.
 * - `status`: answered with a gRPC status; nothing is stored. `retryAfter` (ms) goes along as the service's RetryInfo
 * - `drop`: every connection is cut before the answer; the messages are stored unless `stored` is false
 * - `hang`: no answer, ever; stored only if `stored` says so
 */
type PublishFault =
  | {
      readonly kind: 'status';
      readonly code: status;
      readonly details?: string;
      readonly retryAfter?: number;
    }
  | { readonly kind: 'drop'; readonly stored?: boolean }
  | { readonly kind: 'hang'; readonly stored?: boolean };

export type Fault = PublishFault & {
  /** Only this topic, by its short name; all when left out. */
  readonly topic?: string;
  /** How often it strikes; until it is lifted when left out. */
  readonly times?: number;
  /** Only requests with such a message: a poisoned event. */
  readonly holding?: (message: PeerMessage) => boolean;
};

export interface InjectedFault {
  /** Resolves when it strikes for the first time. */
  readonly struck: Promise<void>;
  lift(): void;
}

interface Entry {
  readonly fault: Fault;
  left: number;
  readonly strike: () => void;
}

/** Faults in the order they were injected; the first that fits strikes. */
export class Faults {
  #entries: Entry[] = [];

  /** @param place among those there are; the last one when left out */
  inject(fault: Fault, place = this.#entries.length): InjectedFault {
    const { promise, resolve } = Promise.withResolvers<void>();
    const entry = { fault, left: fault.times ?? Infinity, strike: resolve };
    this.#entries = this.#entries.toSpliced(place, 0, entry);
    return { struck: promise, lift: () => this.#remove(entry) };
  }

  onPublish(topic: string, messages: readonly PeerMessage[]): PublishFault | null {
    const entry = this.#entries.find(
      ({ fault }) =>
        (fault.topic ?? topic) === topic && (fault.holding === undefined || messages.some(fault.holding)),
    );
    if (entry === undefined) return null;
    entry.strike();
    entry.left -= 1;
    if (entry.left <= 0) this.#remove(entry);
    return entry.fault;
  }

  #remove(entry: Entry): void {
    this.#entries = this.#entries.filter((other) => other !== entry);
  }
}
