import { MillraceError } from '../../core/errors.ts';

/** What went wrong; `rejected` is any other 4xx or a redirect. */
export type ServiceErrorCode =
  | 'bad_request'
  | 'unauthorised'
  | 'forbidden'
  | 'not_found'
  | 'unprocessable'
  | 'rate_limited'
  | 'unavailable'
  | 'server_error'
  | 'rejected'
  | 'timed_out'
  | 'connection_lost'
  | 'unreachable'
  | 'answer_malformed';

/** The error of every operation: the service refused, or its answer did not come whole. */
export class ServiceError extends Error {
  readonly code: ServiceErrorCode;
  /** `GET /v2/user`: method and path template, without ids. */
  readonly operation: string;
  /** HTTP status; null when no answer came. */
  readonly status: number | null;
  /** One line. */
  readonly detail: string;
  /** True when the same call may succeed later. */
  readonly retryable: boolean;
  /** From Retry-After, milliseconds from now; null when the answer had none. */
  readonly retryAfterMs: number | null;
  /** True when the service may have acted on the request without an answer that says so. */
  readonly maybeApplied: boolean;

  constructor(
    fields: Pick<ServiceError, 'code' | 'operation' | 'status' | 'detail' | 'retryable'> &
      Partial<Pick<ServiceError, 'retryAfterMs' | 'maybeApplied'>>,
    options?: ErrorOptions,
  ) {
    const status = fields.status === null ? '' : ` (${fields.status})`;
    super(`${fields.operation}: ${fields.code}${status}: ${fields.detail}`, options);
    this.name = 'ServiceError';
    this.code = fields.code;
    this.operation = fields.operation;
    this.status = fields.status;
    this.detail = fields.detail;
    this.retryable = fields.retryable;
    this.retryAfterMs = fields.retryAfterMs ?? null;
    this.maybeApplied = fields.maybeApplied ?? false;
  }
}

/** A parameter outside the documented limits; nothing was sent. */
export class ServiceInputError extends MillraceError {
  /** @param parameter as the operation calls it, such as `userIds[3]` */
  constructor(parameter: string, problem: string) {
    super('usage', `${parameter} ${problem}`);
    this.name = 'ServiceInputError';
  }
}
