import type { Clock } from '../core/clock.ts';
import type { Tracing } from '../core/tracing.ts';
import type { Documents } from './documents.ts';
import type { Stages } from './stages.ts';
import type { ReceiverLimits } from './limits.ts';
import type { Outcome } from './outcome.ts';

/** What a hook learns of a delivery beside its outcome; never a body or the id of a user. */
export interface DeliveryInfo {
  /** From the end of the headers to the answer, milliseconds. */
  readonly durationMs: number;
  /** Size of the decompressed body, 0 if it was not read. */
  readonly bodyBytes: number;
  /** Index of the secret that matched, `null` if none did or the scheme has none. */
  readonly secret: number | null;
  /** Event type, `null` if it is not known. For logs: as the label of a metric it would have no bounds. */
  readonly type: string | null;
}

/** What can be exchanged while deliveries come in; those that have begun keep what they began with. */
export interface Replaceable extends Pick<Stages, 'verifier' | 'validate'> {
  /** 422 lets the sender see that its event was invalid, and send it again. */
  readonly quarantineStatus: 202 | 422;
}

export interface ReceiverOptions extends Replaceable, Pick<Stages, 'isBacklogFull' | 'ingest' | 'receipts'> {
  /** What can be read at this address, by anybody; left out for nothing. */
  readonly documents?: Documents | undefined;
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly path: string;
  /** Shares the port with other processes that say so too; the kernel spreads the connections. */
  readonly reusePort: boolean;
  readonly limits?: Partial<ReceiverLimits>;
  readonly clock: Clock;
  /** Told of every request once, when it is answered or given up. */
  readonly onOutcome?: (outcome: Outcome, info: DeliveryInfo) => void;
  /** Told once, when an authentic delivery has X-Forwarded-For and `trustedProxies` is 0. */
  readonly onForwarded?: () => void;
  /** Records a span around each delivery; left out when nobody collects them. */
  readonly tracing?: Pick<Tracing, 'receive'> | undefined;
  /** Told of what nobody expected: a rejection that is not in the catalogue, a fault in a hook. */
  readonly onError?: (error: unknown) => void;
}
