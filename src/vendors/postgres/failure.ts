import { MillraceError, messageOf } from '../../core/errors.ts';
import type { SendResult } from '../../core/sink.ts';

/** Classes of SQLSTATE after which a retry can work: connections, conflicts of transactions, missing resources, shutdowns. */
const RETRYABLE = new Set(['08', '40', '53', '55', '57', '58']);

/** Classes about a row: invalid data, constraints of the table, limits of a value. */
const OF_ROWS = new Set(['22', '23', '54']);

const ADVICE: Readonly<Record<string, string>> = {
  '28P01': 'check user and password: ',
  '28000': 'check user, password and pg_hba.conf: ',
  '3D000': 'create the database first: ',
  '42501': 'the user may not do this; grant it CREATE on the schema, or create the tables: ',
};

/** Describes an error of the driver or the server; one without a SQLSTATE is of the connection. */
export function faultOf(error: unknown): { readonly retryable: boolean; readonly reason: string } {
  const code = stateOf(error);
  if (code === null) return { retryable: true, reason: reasonOf(error) };
  return {
    retryable: RETRYABLE.has(code.slice(0, 2)),
    reason: `${ADVICE[code] ?? ''}${withoutValues(code, messageOf(error))} (${code})`,
  };
}

/** The same for a command. */
export function toMillraceError(database: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  // An error in this program: a retry would not help.
  if (error instanceof TypeError || error instanceof RangeError) throw error;
  const { retryable, reason } = faultOf(error);
  const code = retryable ? 'database_unavailable' : 'database_refused';
  return new MillraceError(code, `${database}: ${reason}`, { cause: error });
}

/**
 * The result of a failed transaction for its events. Values are shaped for their columns, so an error mostly means missing
 * rights or a fault of the system, which an operator can correct. Only a row that the table refuses is the event's fault.
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

/** Why rows are refused, without their values; null for an error that is not about rows. */
export function refusalOf(error: unknown): string | null {
  return isOfRows(stateOf(error)) ? faultOf(error).reason : null;
}

function isOfRows(code: string | null): boolean {
  return code !== null && OF_ROWS.has(code.slice(0, 2));
}

/** In messages about invalid data the value is in quotes. */
function withoutValues(code: string, message: string): string {
  return code.startsWith('22') ? message.replaceAll(/".*"/gs, '…') : message;
}

/** Codes of the system, such as EPIPE, look like a SQLSTATE; but no class of SQLSTATE begins with an E. */
function stateOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null;
  return /^(?!E)[0-9A-Z]{5}$/.test(error.code) ? error.code : null;
}

/** For a host with several addresses the driver reports an error of each; the first one is enough. */
function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return messageOf(first) || 'the connection failed';
}
