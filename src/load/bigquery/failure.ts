import { MillraceError, messageOf } from '../../core/errors.ts';

/** Begins the description of an assertion that fails when another load has changed the ledger meanwhile. */
export const OVERTAKEN = 'millrace: another load came first';

/** Begins the names of the tables that rows wait in. */
export const STAGED = '_millrace_rows_';

/** A job that BigQuery ended with an error. */
export class JobError extends Error {
  readonly reason: string;

  constructor({ reason, message }: { readonly reason?: string; readonly message?: string }) {
    super(message ?? 'the job failed');
    this.reason = reason ?? '';
  }
}

/** Google's reasons after which the same may work; quotas are given again in time. */
const PASSING = new Set([
  'backendError',
  'internalError',
  'jobBackendError',
  'jobInternalError',
  'jobRateLimitExceeded',
  'quotaExceeded',
  'rateLimitExceeded',
  'tableUnavailable',
  'timeout',
  'userRateLimitExceeded',
]);
const PASSING_STATUS = new Set([408, 429, 500, 502, 503, 504]);
/** Errors of the connection, as Node names them; what signs in has codes of its own. */
const LOST = /^E(?:CONN|PIPE|TIMEDOUT|AI_AGAIN|HOST|NET|NOTFOUND)|^ERR_STREAM/;

/** True where the same may work when it is asked again. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (reasonsOf(error).some((reason) => PASSING.has(reason))) return true;
  const status = statusOf(error);
  if (typeof status === 'number') return PASSING_STATUS.has(status);
  return typeof status === 'string'
    ? LOST.test(status)
    : /socket hang up|network|fetch failed/i.test(error.message);
}

/** True where there is such a thing already: a job of this id, for one. */
export function isThere(error: unknown): boolean {
  return statusOf(error) === 409 || reasonsOf(error).includes('duplicate');
}

export function isMissing(error: unknown): boolean {
  return statusOf(error) === 404 || reasonsOf(error).includes('notFound');
}

/** The same for a command. */
export function toMillraceError(place: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  // A slip of the program's own is nothing to be tried again.
  if (error instanceof TypeError || error instanceof RangeError) throw error;
  const message = messageOf(error);
  const isOvertaken = message.includes(OVERTAKEN) || /concurrent update|could not serialize/i.test(message);
  // Another load takes what is staged for a leftover.
  if (isOvertaken || (isMissing(error) && message.includes(STAGED)))
    return new MillraceError('database_in_use', `${place}: ${message}`, { cause: error });
  const code = isPassing(error) ? 'database_unavailable' : 'database_refused';
  return new MillraceError(code, `${place}: ${adviceFor(error)}${message}`, { cause: error });
}

function adviceFor(error: unknown): string {
  if (/default credentials/i.test(messageOf(error)))
    return 'sign in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS: ';
  const status = statusOf(error);
  return status === 401 || status === 403 || reasonsOf(error).includes('accessDenied')
    ? 'the account needs the roles BigQuery Job User and, on the dataset, BigQuery Data Editor: '
    : '';
}

function statusOf(error: unknown): number | string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'number' || typeof error.code === 'string' ? error.code : undefined;
}

function reasonsOf(error: unknown): readonly string[] {
  if (error instanceof JobError) return [error.reason];
  if (!(error instanceof Error) || !('errors' in error) || !Array.isArray(error.errors)) return [];
  return (error.errors as readonly { readonly reason?: unknown }[]).map(({ reason }) => String(reason));
}
