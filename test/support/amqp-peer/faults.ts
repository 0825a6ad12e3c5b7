import { FaultList } from '../fault-list.ts';

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
 * - `stolen`: a reader that closes its link gets "another reader has taken it", as if both happened at once
 */
export type Fault = (BatchFault | { readonly kind: 'unauthorized' } | { readonly kind: 'stolen' }) & {
  /** Only this hub; all when left out. */
  readonly hub?: string;
  /** How often it strikes; until it is lifted when left out. */
  readonly times?: number;
  /** Only batches that hold these bytes anywhere, such as an idempotency key: a poisoned event. */
  readonly containing?: string;
};

export class Faults extends FaultList<Fault> {
  onBatch(hub: string, batch: Buffer): BatchFault | null {
    const matches = ({ kind, hub: only = hub, containing }: Fault): boolean =>
      kind !== 'unauthorized' &&
      kind !== 'stolen' &&
      only === hub &&
      (containing === undefined || batch.includes(containing));
    return this.strike(matches) as BatchFault | null;
  }

  /** @param audience what a token is asked for, such as `sb://127.0.0.1/events` */
  onToken(audience: string): boolean {
    const matches = ({ kind, hub }: Fault): boolean =>
      kind === 'unauthorized' && (hub === undefined || audience.includes(`/${hub}`));
    return this.strike(matches) !== null;
  }

  /** A reader closes its link. */
  onClose(name: string): boolean {
    return this.strike(({ kind, hub = name }) => kind === 'stolen' && hub === name) !== null;
  }
}
