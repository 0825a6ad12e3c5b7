import type { CommanderError } from 'commander';
import { CATALOGUE, EXIT, MillraceError, messageOf } from '../core/errors.ts';
import { StorageError, WHAT_TO_DO } from '../core/storage.ts';
import { errorCode, isSystemError, NotFollowed } from '../lib/durable.ts';
import { aboutDuration } from '../lib/units.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { ServiceError } from '../history/service/errors.ts';
import { hasColours, styled, type Io } from './io.ts';

/** Whether a command line has --json, before a `--`. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).includes('--json');
}

/** Writes the error of a command to stderr: as text, or with --json as one JSON document in the last line. */
export function writeFailure(io: Io, thrown: unknown, isJson: boolean): void {
  const isStopped = io.signal.aborted && thrown instanceof Error && thrown.name === 'AbortError';
  const error = isStopped
    ? new MillraceError('interrupted', 'run it again')
    : (outsideCause(thrown) ?? thrown);
  if (isJson) return void io.stderr.write(`${visible(JSON.stringify({ error: documentOf(error) }))}\n`);
  const name = styled('red', 'millrace:', hasColours(io.stderr, io.env));
  io.stderr.write(`${name} ${visibleLines(detailOf(error))}\n`);
  const isExpected = error instanceof MillraceError || error instanceof ServiceError;
  if (!isExpected && error instanceof Error) io.stderr.write(visibleLines(`${error.stack ?? ''}\n`));
}

/** The error for a stdout that cannot be written: the results are incomplete. */
export function lostOutput(error: NodeJS.ErrnoException): MillraceError {
  return new MillraceError('output_unwritable', `standard output: ${messageOf(error)}`, { cause: error });
}

/** Writes an error of the command line as JSON. */
export function writeUsageFailure(io: Io, { code, message }: CommanderError): void {
  const detail = code === 'commander.help' ? 'a command is missing; --help names them' : message;
  writeFailure(io, new MillraceError('usage', detail.replace(/^error: /, '')), true);
}

/** The message, for wrong usage without its title, with the pause that the service asks for. */
function detailOf(error: unknown): string {
  if (error instanceof MillraceError && error.code === 'usage') return error.detail;
  const pauseMs = error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0;
  return `${messageOf(error)}${pauseMs > 0 ? `; it asks for a pause of ${aboutDuration(pauseMs)}` : ''}`;
}

function documentOf(error: unknown): object {
  if (error instanceof MillraceError) {
    const { code, detail, exit, retryable } = error;
    return { code, title: CATALOGUE[code].title, detail, exit, retryable };
  }
  const detail = detailOf(error);
  const exit = EXIT.failed;
  if (error instanceof ServiceError) {
    const { code, retryable } = error;
    return { code: `service_${code}`, title: 'The service refused or failed', detail, exit, retryable };
  }
  const { title, retryable } = CATALOGUE.internal;
  return { code: 'internal', title, detail, exit, retryable };
}

/** Codes of Node and SQLite for faults of disks, files, permissions and limits. */
const OF_FILES =
  /^(E(NOSPC|DQUOT|ROFS|IO|ACCES|PERM|MFILE|NFILE|FBIG|STALE|BUSY|NOENT|NOTDIR|ISDIR|EXIST|NOTEMPTY|LOOP|NAMETOOLONG|XDEV|NOTSUP)|SQLITE_(FULL|IOERR|READONLY|CANTOPEN|PERM|CORRUPT|NOTADB).*)$/;
/** System calls of connections and programs, which have the same codes. */
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

/** The error to show for a cause outside of the program, without a stack; null for other errors. */
function outsideCause(error: unknown): MillraceError | null {
  if (error instanceof MillraceError) return null;
  // A folder can be used as a store.
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
