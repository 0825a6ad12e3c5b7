import { CATALOGUE, type ErrorCode } from '../core/errors.ts';
import type { InvalidReason } from '../core/ingest.ts';

/** The entries of the catalogue that are answers to a request. */
export type ProblemCode = {
  [Code in ErrorCode]: (typeof CATALOGUE)[Code] extends { readonly status: number } ? Code : never;
}[ErrorCode];

export function isProblem(code: ErrorCode): code is ProblemCode {
  return 'status' in CATALOGUE[code];
}

/** What became of one delivery. `gone`: the sender left before its body was complete, so nobody can be answered. */
export type Outcome =
  | { readonly kind: 'accepted'; readonly id: string; readonly receipt?: string | undefined }
  | { readonly kind: 'duplicate'; readonly id: string }
  /** Of a user whose data was erased: dropped. */
  | { readonly kind: 'erased'; readonly id: string }
  | {
      readonly kind: 'quarantined';
      readonly id: string;
      readonly reasons: readonly [InvalidReason, ...InvalidReason[]];
      readonly receipt?: string | undefined;
    }
  | {
      readonly kind: 'problem';
      readonly code: ProblemCode;
      readonly detail: string;
      readonly retryAfterMs?: number;
    }
  | { readonly kind: 'gone' };

export function problem(code: ProblemCode, detail: string, retryAfterMs?: number): Outcome {
  return retryAfterMs === undefined
    ? { kind: 'problem', code, detail }
    : { kind: 'problem', code, detail, retryAfterMs };
}
