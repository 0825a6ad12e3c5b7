import type { Clock } from '../core/clock.ts';
import type { Ingest } from '../core/ingest.ts';
import type { Tracing } from '../core/tracing.ts';
import type { Verifier } from '../core/verifier.ts';
import type { Validator } from './validate/envelope.ts';
import type { Documents } from './documents.ts';
import type { Outcome } from './outcome.ts';

/** Limits of one request, of one connection, and of all together. Times are milliseconds, sizes bytes. */
export interface ReceiverLimits {
  /** Largest body, before and after decompression. */
  readonly maxBodyBytes: number;
  /**
   * Most decompressed bytes for a byte of a compressed body, which is not verified yet. Up to 64 KiB any ratio is accepted.
   */
  readonly maxDecompressionRatio: number;
  /** Bytes read, decompressed or hashed in a minute for deliveries of one address that are not authentic; 0 is no bound. */
  readonly unverifiedBytes: number;
  /** Number of proxies in front, each of which adds an address to X-Forwarded-For. */
  readonly trustedProxies: number;
  /** All bodies in memory; above it new ones are answered 503. */
  readonly maxBufferedBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** Until the end of the headers. */
  readonly headersTimeout: number;
  /** From the end of the headers to the end of the body; then 408. */
  readonly bodyTimeout: number;
  /** From the end of the headers to the answer; then 503. Includes the body's time: senders give up after 15 s. */
  readonly answerTimeout: number;
  /** Retry-After of a 503 without a better estimate. */
  readonly retryAfter: number;
  /** For an idle connection; longer than the 60 s of common load balancers, which should close first. */
  readonly keepAliveTimeout: number;
  /** Interval of node's check of `headersTimeout`. */
  readonly checkInterval: number;
  /** From an answer to a body that was not read until the socket is destroyed. */
  readonly lingerTimeout: number;
}

/** Limits that only tests change. */
export const OWN_LIMITS = {
  maxBufferedBytes: 256 * 1024 * 1024,
  checkInterval: 1000,
  lingerTimeout: 1000,
};

type GivenLimits = Omit<ReceiverLimits, keyof typeof OWN_LIMITS> & Partial<ReceiverLimits>;

/** Receipts: each names the entry of a delivery in a signed log, and has the salt that opens the entry. */
export interface Receipting {
  /** A salt for the entry of one event, so that others cannot read it. */
  newSalt(): string;
  /** Value of `Millrace-Receipt`; undefined while no receipt can be promised. */
  header(seq: number, salt: string, receivedAt: number): string | undefined;
}

/** The parts that a delivery passes, in this order. */
export interface Stages {
  /** True while the backlog is above its limit; asked before a body is read. */
  isBacklogFull(): boolean;
  readonly verifier: Verifier;
  readonly validate: Validator;
  readonly ingest: Ingest;
  /** Undefined without receipts. */
  readonly receipts?: Receipting | undefined;
  readonly limits: Pick<ReceiverLimits, 'maxBodyBytes' | 'maxDecompressionRatio'>;
  readonly clock: Clock;
  /** Called with unexpected errors: one that is no MillraceError with a status, or one of a hook. */
  onError(error: unknown): void;
}

/** Facts about a delivery for `onOutcome`; never a body or the id of a user. */
export interface DeliveryInfo {
  /** From the end of the headers to the answer, milliseconds. */
  readonly durationMs: number;
  /** Of the decompressed body; 0 if it was not read. */
  readonly bodyBytes: number;
  /** Index of the secret that matched; null if none did, or the scheme has none. */
  readonly secret: number | null;
  /** Event type; null if it is not known. Not for metrics: a label would have no bounds. */
  readonly type: string | null;
}

/** Parts that a reload replaces; deliveries that have begun keep the old ones. */
export interface Replaceable extends Pick<Stages, 'verifier' | 'validate'> {
  /** 422 shows the sender that its event was invalid; it then sends it again. */
  readonly quarantineStatus: 202 | 422;
}

export interface ReceiverOptions extends Omit<Stages, 'limits'>, Replaceable {
  /** Public documents at this address; undefined for none. */
  readonly documents?: Documents | undefined;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly path: string;
  /** Shares the port with other processes that set it too; the kernel distributes the connections. */
  readonly reusePort: boolean;
  readonly limits: GivenLimits;
  /** Called once for each request, when it is answered or given up. */
  readonly onOutcome?: (outcome: Outcome, info: DeliveryInfo) => void;
  /** Called once, when an authentic delivery has X-Forwarded-For and `trustedProxies` is 0. */
  readonly onForwarded?: () => void;
  /** Records a span for each delivery; undefined without tracing. */
  readonly tracing?: Pick<Tracing, 'receive'> | undefined;
}
