import type { Clock } from '../core/clock.ts';
import type { Ingest } from '../core/ingest.ts';
import type { Tracing } from '../core/tracing.ts';
import type { Verifier } from '../core/verifier.ts';
import type { Validator } from './validate/envelope.ts';
import type { Documents } from './documents.ts';
import type { Outcome } from './outcome.ts';

/** What one request, one connection and all of them together may take. Times are milliseconds, sizes bytes. */
export interface ReceiverLimits {
  /** Largest body, before and after decompression. */
  readonly maxBodyBytes: number;
  /**
   * Bytes that a byte of a compressed body may become; one that becomes at most 64 KiB is taken whatever its ratio. What
   * is inside has not been verified yet.
   */
  readonly maxDecompressionRatio: number;
  /** Work, in bytes read, decompressed or hashed, that an address may cause in a minute with what is not authentic; 0 is no bound. */
  readonly unverifiedBytes: number;
  /** Proxies in front, each of which adds an address to X-Forwarded-For. */
  readonly trustedProxies: number;
  /** All bodies in memory at once; above it new ones are answered 503, so that many senders cannot exhaust it. */
  readonly maxBufferedBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** For the headers to arrive. */
  readonly headersTimeout: number;
  /** From the end of the headers to the end of the body; then 408. */
  readonly bodyTimeout: number;
  /** From the end of the headers to the answer; then 503. Senders give up after 15 s, so the body's time is part of it. */
  readonly answerTimeout: number;
  /** What Retry-After says in a 503 where nobody knows better. */
  readonly retryAfter: number;
  /** An idle connection is kept this long; longer than the 60 s of common load balancers, who should close first. */
  readonly keepAliveTimeout: number;
  /** How often node looks for connections that are over `headersTimeout`. */
  readonly checkInterval: number;
  /** After an answer to a body that was not read: how long the sender has to notice before its socket is destroyed. */
  readonly lingerTimeout: number;
}

/** Limits that only tests set otherwise. */
export const OWN_LIMITS = {
  maxBufferedBytes: 256 * 1024 * 1024,
  checkInterval: 1000,
  lingerTimeout: 1000,
};

type GivenLimits = Omit<ReceiverLimits, keyof typeof OWN_LIMITS> & Partial<ReceiverLimits>;

/** A receipt says which entry of a signed log a delivery has become, and what opens that entry. */
export interface Receipting {
  /** For one event: what makes its entry say nothing to others. */
  newSalt(): string;
  /** The value of `Millrace-Receipt`; undefined while none can be promised. */
  header(seq: number, salt: string, receivedAt: number): string | undefined;
}

/** The parts a delivery passes through, in this order. */
export interface Stages {
  /** True while the backlog is above its mark; asked before a body is read. */
  isBacklogFull(): boolean;
  readonly verifier: Verifier;
  readonly validate: Validator;
  readonly ingest: Ingest;
  /** Makes receipts of what is accepted; left out where there are none. */
  readonly receipts?: Receipting | undefined;
  readonly limits: Pick<ReceiverLimits, 'maxBodyBytes' | 'maxDecompressionRatio'>;
  /** Wall clock, milliseconds. */
  now(): number;
  /** Told of every rejection that is not a MillraceError with a status. */
  onError(error: unknown): void;
}

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
  readonly limits: GivenLimits;
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
