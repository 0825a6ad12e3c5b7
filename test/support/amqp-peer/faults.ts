/**
 * What can go wrong with a batch that has come in. Except for `drop`, `latency`, and a `hang` or `detach` that says so, the
 * batch is not stored.
 * - `server-busy`, `size-exceeded`: the service's own rejections
 * - `reject`: any other AMQP condition
 * - `release`, `modify`: not taken, with AMQP's other outcomes for that
 * - `detach`: the link is closed before the batch is confirmed
 * - `drop`: the connection is cut before the batch is confirmed; the batch is stored unless `stored` is false
 * - `hang`: neither confirmed nor rejected, for ever
 * - `latency`: stored at once, confirmed after `ms`
 */
type BatchFault =
  | { readonly kind: 'server-busy' }
  | { readonly kind: 'size-exceeded' }
  | { readonly kind: 'reject'; readonly condition: string; readonly description?: string }
  | { readonly kind: 'release' | 'modify' }
  | { readonly kind: 'detach'; readonly stored?: boolean }
  | { readonly kind: 'drop'; readonly stored?: boolean }
  | { readonly kind: 'hang'; readonly stored?: boolean }
  | { readonly kind: 'latency'; readonly ms: number };

/**
 * - `unauthorized`: tokens are refused, which ends attempts to open a link
 * - `stolen`: a reader that closes its link is told that another one has taken it, as if both were said at once
 */
export type Fault = (BatchFault | { readonly kind: 'unauthorized' } | { readonly kind: 'stolen' }) & {
  /** Only this hub; all when left out. */
  readonly hub?: string;
  /** How often it strikes; until it is lifted when left out. */
  readonly times?: number;
  /** Only batches that hold these bytes anywhere, such as an idempotency key: a poisoned event. */
  readonly containing?: string;
};

export interface InjectedFault {
  /** Resolves when it strikes for the first time. */
  readonly struck: Promise<void>;
  /** How often it has struck. */
  readonly strikes: number;
  readonly lift: () => void;
}

interface Entry {
  readonly fault: Fault;
  left: number;
  strikes: number;
  readonly strike: () => void;
}

/** Faults in the order they were injected; the first that fits strikes. */
export class Faults {
  #entries: Entry[] = [];

  /** @param place among those there are; the last one when left out */
  inject(fault: Fault, place = this.#entries.length): InjectedFault {
    const { promise, resolve } = Promise.withResolvers<void>();
    const entry = { fault, left: fault.times ?? Infinity, strikes: 0, strike: resolve };
    this.#entries = this.#entries.toSpliced(place, 0, entry);
    return {
      struck: promise,
      get strikes() {
        return entry.strikes;
      },
      lift: () => this.#remove(entry),
    };
  }

  onBatch(hub: string, batch: Buffer): BatchFault | null {
    for (const entry of this.#entries) {
      const { fault } = entry;
      if (fault.kind === 'unauthorized' || fault.kind === 'stolen') continue;
      if ((fault.hub ?? hub) !== hub) continue;
      if (fault.containing !== undefined && !batch.includes(fault.containing)) continue;
      this.#strike(entry);
      return fault;
    }
    return null;
  }

  /** @param audience what a token is asked for, such as `sb://127.0.0.1/events` */
  onToken(audience: string): boolean {
    return this.#strikes('unauthorized', (hub) => audience.includes(`/${hub}`));
  }

  /** A reader closes its link. */
  onClose(hub: string): boolean {
    return this.#strikes('stolen', (name) => name === hub);
  }

  #strikes(kind: Fault['kind'], isFor: (hub: string) => boolean): boolean {
    const entry = this.#entries.find(
      ({ fault }) => fault.kind === kind && (fault.hub === undefined || isFor(fault.hub)),
    );
    if (entry !== undefined) this.#strike(entry);
    return entry !== undefined;
  }

  #strike(entry: Entry): void {
    entry.strike();
    entry.strikes += 1;
    entry.left -= 1;
    if (entry.left <= 0) this.#remove(entry);
  }

  #remove(entry: Entry): void {
    this.#entries = this.#entries.filter((other) => other !== entry);
  }
}
