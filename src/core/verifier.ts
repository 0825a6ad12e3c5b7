/** Request headers with lower-case names, as `node:http` gives them. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Why a signature was not accepted. The request is answered 401 and its body forgotten. */
export type RefusalCode =
  'signature_missing' | 'signature_invalid' | 'timestamp_too_old' | 'timestamp_too_new' | 'timestamp_invalid';

export type Verification =
  | {
      readonly ok: true;
      /** The delivery id the sender signed. */
      readonly id: string;
      /** Index in the configured list of the secret that matched, so that an old one can be retired. */
      readonly secret: number;
      /** Canonical ids of the teams whose events that secret may sign; left out where it may sign those of every team. */
      readonly teams?: ReadonlySet<string>;
      /** The headers needed to verify the same body again later; lower-case names. */
      readonly headers: Readonly<Record<string, string>>;
    }
  | Refusal;

export interface Refusal {
  readonly ok: false;
  readonly code: RefusalCode;
  readonly detail: string;
}

/** Checking an ed25519 signature costs as much as hashing this many bytes, and then it hashes the body. */
export const TRY_BYTES = 64 * 1024;

/** What the headers alone say. */
export type Precheck =
  | Refusal
  | {
      readonly ok: true;
      /** Signatures of a kind that each cost far more than a hash of a small body; 0 for HMACs. */
      readonly tries: number;
    };

/** Checks that a body is what a holder of one of the secrets signed. Pure: no clock, no I/O of its own. */
export interface Verifier {
  readonly scheme: string;
  /**
   * Asked before the body is read, so that a delivery which cannot be genuine costs no more than its headers. Refuses
   * nothing that `verify` would accept. A scheme that can say nothing without the body leaves it out.
   */
  precheck?(headers: RequestHeaders, now: number): Precheck;
  /** @param now wall clock in milliseconds, for the timestamp's tolerance. */
  verify(headers: RequestHeaders, body: Buffer, now: number): Verification;
}
