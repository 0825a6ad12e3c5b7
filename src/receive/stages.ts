import type { Ingest } from '../core/ingest.ts';
import type { Verifier } from '../core/verifier.ts';
import type { Validator } from '../validate/envelope.ts';
import type { BodyLimits } from './body.ts';

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
  readonly limits: BodyLimits;
  /** Wall clock, milliseconds. */
  now(): number;
  /** Told of every rejection that is not a MillraceError with a status. */
  onError(error: unknown): void;
}
