import { CATALOGUE, type ErrorCode } from '../core/errors.ts';
import type { InvalidReason } from '../core/ingest.ts';

/** Codes of the catalogue that have an HTTP status. */
export type ProblemCode = {
  [Code in ErrorCode]: (typeof CATALOGUE)[Code] extends { readonly status: number } ? Code : never;
}[ErrorCode];

export function isProblem(code: ErrorCode): code is ProblemCode {
  return 'status' in CATALOGUE[code];
}

/** The result of one delivery. `gone`: the connection ended before the body was complete; there is no answer. */
export type Outcome =
  | { readonly kind: 'accepted'; readonly id: string; readonly receipt?: string | undefined }
  | { readonly kind: 'duplicate'; readonly id: string }
  /** Its user was erased: it is dropped. */
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
