import { ServiceError, type ServiceErrorCode } from './errors.ts';
import { isRecord, jsonOrSame } from '../../lib/parsed.ts';
import { parseRetryAfter } from '../../lib/retry-after.ts';

interface Headers {
  readonly [name: string]: string | string[] | undefined;
}

const BY_STATUS: Readonly<Record<number, ServiceErrorCode>> = {
  400: 'bad_request',
  401: 'unauthorised',
  403: 'forbidden',
  404: 'not_found',
  408: 'timed_out',
  409: 'bad_request',
  410: 'not_found',
  422: 'unprocessable',
  429: 'rate_limited',
  503: 'unavailable',
  504: 'timed_out',
};

/** The error for an answer outside 2xx. */
export function errorOfAnswer(
  operation: string,
  answer: { readonly status: number; readonly headers: Headers; readonly text: string },
  nowMs: number,
): ServiceError {
  const { status, headers, text } = answer;
  const header = headers['retry-after'];
  return new ServiceError({
    code: BY_STATUS[status] ?? (status >= 500 ? 'server_error' : 'rejected'),
    operation,
    status,
    // Plain text for some errors, HTML from proxies.
    detail: detailOf(jsonOrSame(text)),
    retryable: status >= 500 || status === 429 || status === 408,
    retryAfterMs: parseRetryAfter(Array.isArray(header) ? header[0] : header, nowMs),
    // 429, and 503 with Retry-After, are answered before any work.
    maybeApplied: status >= 500 && !(status === 503 && header !== undefined),
  });
}

/** Codes with which nothing reached the service: even a trigger may be sent again. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const TIMED_OUT = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);
const LOST = new Set([
  'UND_ERR_SOCKET',
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

function failureCode(name: string, isLost: boolean): { code: ServiceErrorCode; retryable: boolean } {
  if (TIMED_OUT.has(name)) return { code: 'timed_out', retryable: true };
  if (isLost) return { code: 'connection_lost', retryable: true };
  return { code: 'unreachable', retryable: NOT_SENT.has(name) };
}

/** The error for a request without a whole answer; errors of certificates and the like are not retryable. */
export function errorOfFailure(operation: string, cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause;
  const { code, message } = (
    cause instanceof Error ? cause : new Error(String(cause))
  ) as NodeJS.ErrnoException;
  const name = code ?? '';
  const detail = [name, message].filter((part) => part !== '').join(' ');
  const isLost = LOST.has(name) || name.startsWith('HPE_') || message === 'terminated';
  const fields = { operation, status: null, detail, ...failureCode(name, isLost) };
  return new ServiceError({ ...fields, maybeApplied: !NOT_SENT.has(name) }, { cause });
}

/** Characters of a detail: enough to understand an error, too few for a record in a log. */
const LONGEST = 500;

/** One line for the body of an error: its `detail` (a string, an object or a list of problems), or all of it. */
function detailOf(body: unknown): string {
  const text = describe(isRecord(body) && 'detail' in body ? body['detail'] : body);
  const line = text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  if (line === '') return 'no detail was given';
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

function describe(detail: unknown): string {
  if (typeof detail === 'string') return detail;
  if (detail === undefined || detail === null) return '';
  if (Array.isArray(detail)) return detail.map(problem).join('; ');
  if (isRecord(detail)) {
    for (const key of ['message', 'msg', 'error_message', 'error', 'detail', 'title']) {
      if (typeof detail[key] === 'string' && detail[key] !== '') return detail[key];
    }
  }
  return JSON.stringify(detail);
}

/** `{"loc": ["body", "user_ids", 0], "msg": "not a UUID"}` reads `body.user_ids.0: not a UUID`. */
function problem(item: unknown): string {
  if (!isRecord(item) || !Array.isArray(item['loc'])) return describe(item);
  return `${item['loc'].map(String).join('.')}: ${describe(item['msg'] ?? item['type'])}`;
}

/** Upper bound of the first delay; it doubles with each attempt. */
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
/** A longer Retry-After is not waited for: the caller gets it. */
const LONGEST_RETRY_AFTER_MS = 300_000;

/** Milliseconds until the next attempt, from the upper half of a bound that doubles; null when there is none. */
export function retryDelay(error: ServiceError, attempt: number, random: () => number): number | null {
  if (!error.retryable) return null;
  const bound = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  if (error.retryAfterMs === null) return bound * (0.5 + random() / 2);
  // With jitter on top: many clients may have got the same second.
  return error.retryAfterMs > LONGEST_RETRY_AFTER_MS ? null : error.retryAfterMs + random() * FIRST_DELAY_MS;
}
