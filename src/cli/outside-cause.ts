import { messageOf, MillraceError } from '../core/errors.ts';
import { StorageError, WHAT_TO_DO } from '../core/storage.ts';
import { errorCode, isSystemError, NotFollowed } from '../lib/durable.ts';

/** What the system says of a disk, a file, a right or a limit, in Node's words or SQLite's. */
const OF_FILES =
  /^(E(NOSPC|DQUOT|ROFS|IO|ACCES|PERM|MFILE|NFILE|FBIG|STALE|BUSY|NOENT|NOTDIR|ISDIR|EXIST|NOTEMPTY|LOOP|NAMETOOLONG|XDEV|NOTSUP)|SQLITE_(FULL|IOERR|READONLY|CANTOPEN|PERM|CORRUPT|NOTADB).*)$/;
/** Of a connection or a program, which have the same codes. */
const NOT_OF_FILES = /^(connect|listen|bind|accept|spawn)/;
const NO_ROOM = 'make room there';
const NO_RIGHT = 'give this user the right to it';
const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: NO_ROOM,
  EDQUOT: NO_ROOM,
  SQLITE_FULL: NO_ROOM,
  EROFS: 'make it writable',
  EACCES: NO_RIGHT,
  EPERM: NO_RIGHT,
  EIO: 'see the log of the system for what is wrong with the disk',
  EMFILE: 'raise the limit of open files (ulimit -n)',
};

/** What to say of an error with a cause outside of the program, where no stack helps; null for any other. */
export function outsideCause(error: unknown): MillraceError | null {
  if (error instanceof MillraceError) return null;
  // Of a folder that is used as a store.
  const cause = error instanceof StorageError ? error.cause : error;
  const code = errorCode(cause);
  const isOfFiles = !isSystemError(cause) || !NOT_OF_FILES.test(cause.syscall ?? '');
  if (OF_FILES.test(code) && isOfFiles) {
    const advice = ADVICE[code];
    const said = advice === undefined ? '' : `: ${advice}, then run the command again`;
    return new MillraceError('file_unusable', `${messageOf(error)}${said}`, { cause: error });
  }
  if (error instanceof NotFollowed)
    return new MillraceError('file_unusable', error.message, { cause: error });
  if (!(error instanceof StorageError)) return null;
  const said = `${error.message}: ${WHAT_TO_DO[error.fault]}`;
  return new MillraceError('store_unreadable', said, { cause: error });
}
