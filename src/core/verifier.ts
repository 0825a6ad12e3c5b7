/** With lower-case names, as in `node:http`. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Why a signature was refused: the answer is 401, and the body is not kept. */
export type RefusalCode =
  'signature_missing' | 'signature_invalid' | 'timestamp_too_old' | 'timestamp_too_new' | 'timestamp_invalid';

export type Verification =
  | {
      readonly ok: true;
      /** The delivery id that the sender signed. */
      readonly id: string;
      /** Index of the configured secret that matched. */
      readonly secret: number;
      /** Canonical ids of the teams whose events the secret may sign; absent: of all teams. */
      readonly teams?: ReadonlySet<string>;
      /** The headers that verify the same body again later, by lower-case names. */
      readonly headers: Readonly<Record<string, string>>;
    }
  | Refusal;

export interface Refusal {
  readonly ok: false;
  readonly code: RefusalCode;
  readonly detail: string;
}

/** Checking an ed25519 signature costs as much as hashing so many bytes, without the hash of the body. */
export const TRY_BYTES = 64 * 1024;

export type Precheck =
  | Refusal
  | {
      readonly ok: true;
      /** Signatures to check that each cost far more than a hash of a small body; 0 for HMACs. */
      readonly tries: number;
    };

/** Checks that a body was signed with one of the secrets. No clock, no I/O. */
export interface Verifier {
  readonly scheme: string;
  /** Checks the headers before the body is read. Refuses nothing that `verify` would accept. */
  precheck?(headers: RequestHeaders, now: number): Precheck;
  /** @param now milliseconds since the epoch, for the tolerance of the timestamp */
  verify(headers: RequestHeaders, body: Buffer, now: number): Verification;
}
