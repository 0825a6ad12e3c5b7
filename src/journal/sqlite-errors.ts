import { accessSync, constants } from 'node:fs';
import { MillraceError } from '../core/errors.ts';
import { errorCode } from '../lib/durable.ts';

/** True for a state that passes: the disk is full, or the journal has reached its limit. */
export function isDiskFull(error: unknown): boolean {
  return (
    errorCode(error) === 'SQLITE_FULL' || (error instanceof MillraceError && error.code === 'journal_full')
  );
}

/** Codes that say nothing about the content of the file. */
const NOT_DAMAGE =
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|PERM|AUTH|NOMEM|INTERRUPT|CONSTRAINT|TOOBIG|MISUSE)/;

/** True when an error says that the database's file is not what SQLite wrote. */
export function isDamage(error: unknown, file: string): boolean {
  const code = errorCode(error);
  if (!code.startsWith('SQLITE_') || NOT_DAMAGE.test(code)) return false;
  if (!code.startsWith('SQLITE_READONLY')) return true;
  // A damaged header may say that the file is read-only.
  try {
    accessSync(file, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
