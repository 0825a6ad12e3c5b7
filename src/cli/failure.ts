import type { CommanderError } from 'commander';
import { CATALOGUE, EXIT, MillraceError, messageOf } from '../core/errors.ts';
import { StorageError, WHAT_TO_DO } from '../core/storage.ts';
import { errorCode, isSystemError, NotFollowed } from '../lib/durable.ts';
import { formatAbout } from '../lib/units.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { ServiceError } from '../history/service/errors.ts';
import { hasColours, styled, type Io } from './io.ts';

/** Whether a command line asks for JSON; what stands behind `--` is a name, whatever it looks like. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).includes('--json');
}

/** Says on stderr why a command has failed: in words, or with `--json` as its last line, which is one JSON document. */
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

/** Why stdout takes nothing more. What was written of the results is not all of them, whatever they said so far. */
export function lostOutput(error: NodeJS.ErrnoException): MillraceError {
  return new MillraceError('output_unwritable', `standard output: ${messageOf(error)}`, { cause: error });
}

/** The same, as JSON, for a command line that cannot be read. */
export function writeUsageFailure(io: Io, { code, message }: CommanderError): void {
  const detail = code === 'commander.help' ? 'a command is missing; --help names them' : message;
  writeFailure(io, new MillraceError('usage', detail.replace(/^error: /, '')), true);
}

/** A longer pause than is waited for is the caller's to make. */
function detailOf(error: unknown): string {
  const pauseMs = error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0;
  return `${messageOf(error)}${pauseMs > 0 ? `; it asks for a pause of ${formatAbout(pauseMs)}` : ''}`;
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
function outsideCause(error: unknown): MillraceError | null {
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
