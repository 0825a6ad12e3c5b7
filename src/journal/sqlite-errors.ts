import { accessSync, constants } from 'node:fs';

/** SQLite's symbolic result code, or the empty string for any other error. */
export function sqliteCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** The disk, the system or another process, and not what stands in the file. */
const NOT_DAMAGE =
  /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|PERM|AUTH|NOMEM|INTERRUPT|CONSTRAINT|TOOBIG|MISUSE)/;

/** True when an error says that a database's file is not what SQLite wrote. */
export function isDamage(error: unknown, file: string): boolean {
  const code = sqliteCode(error);
  if (!code.startsWith('SQLITE_') || NOT_DAMAGE.test(code)) return false;
  if (!code.startsWith('SQLITE_READONLY')) return true;
  // A damaged header may say that the file is to be read only.
  try {
    accessSync(file, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
