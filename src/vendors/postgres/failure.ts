import { MillraceError, messageOf } from '../../core/errors.ts';
import type { SendResult } from '../../core/sink.ts';

/** Classes of SQLSTATE after which the same may work: connections, conflicts of transactions, too little of something, shutdowns. */
const PASSING = new Set(['08', '40', '53', '55', '57', '58']);

/** Classes about a row: data that does not fit, constraints of the table, limits of a value. */
const OF_ROWS = new Set(['22', '23', '54']);

/** What an error of the database is called. */
export interface DatabaseFault {
  readonly retryable: boolean;
  readonly reason: string;
}

const ADVICE: Readonly<Record<string, string>> = {
  '28P01': 'check user and password: ',
  '28000': 'check user, password and pg_hba.conf: ',
  '3D000': 'create the database first: ',
  '42501': 'the user may not do this; grant it CREATE on the schema, or create the tables: ',
};

/** What an error of the driver or the server means; errors without a SQLSTATE are of the connection. */
export function faultOf(error: unknown): DatabaseFault {
  const code = stateOf(error);
  if (code === null) return { retryable: true, reason: reasonOf(error) };
  return {
    retryable: PASSING.has(code.slice(0, 2)),
    reason: `${ADVICE[code] ?? ''}${withoutValues(code, messageOf(error))} (${code})`,
  };
}

/** The same for a command. */
export function toMillraceError(database: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  // A slip of the program's own is nothing to be tried again.
  if (error instanceof TypeError || error instanceof RangeError) throw error;
  const { retryable, reason } = faultOf(error);
  const code = retryable ? 'database_unavailable' : 'database_refused';
  return new MillraceError(code, `${database}: ${reason}`, { cause: error });
}

/**
 * What a failed transaction means for its events. The shaper makes every value fit its column, so what is refused is mostly
 * the rights' or the system's fault and is mended by an operator; only a row that the table does not take is the event's.
 */
export function resultOf(error: unknown, count: number): SendResult {
  const { reason } = faultOf(error);
  const code = stateOf(error);
  if (isOfRows(code))
    return { status: 'refused', code: 'rejected', reason, ...(count > 1 ? { batch: true } : {}) };
  // The other transaction of a conflict is over by now.
  return code?.startsWith('40') === true
    ? { status: 'retry', reason }
    : { status: 'retry', reason, sink: true };
}

/** Why rows are not taken, without their values; null for an error that is not about them. */
export function refusalOf(error: unknown): string | null {
  return isOfRows(stateOf(error)) ? faultOf(error).reason : null;
}

function isOfRows(code: string | null): boolean {
  return code !== null && OF_ROWS.has(code.slice(0, 2));
}

/** Of data that does not fit, the server's words have the value in quotes. */
function withoutValues(code: string, message: string): string {
  return code.startsWith('22') ? message.replaceAll(/".*"/gs, '…') : message;
}

/** What the system says can look the same, such as EPIPE; no class of SQLSTATE begins with an E. */
function stateOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null;
  return /^(?!E)[0-9A-Z]{5}$/.test(error.code) ? error.code : null;
}

/** Of a host with several addresses the driver says what went wrong with each. */
function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return messageOf(first) || 'the connection failed';
}
