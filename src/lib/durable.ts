import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

// Windows has neither flag; there only the callers' lstat protects.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
// Without it, opening a FIFO waits for a writer.
const NO_WAIT = constants.O_NONBLOCK ?? 0;

export const READ = constants.O_RDONLY;
export const READ_WRITE = constants.O_RDWR;
/** Makes the file; fails if the name exists. */
export const CREATE_NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
/** Mode of a file that only the receiver's user may read. */
export const OWNER_ONLY = 0o600;
export const CREATE = constants.O_RDWR | constants.O_CREAT;

/** A path leads to something other than a plain file or folder. The message names it. */
export class NotFollowed extends Error {
  constructor(path: string, what: string) {
    super(`${path} is ${what}; it is not followed`);
    this.name = 'NotFollowed';
  }
}

/** The `code` of a system error, such as `ENOENT`; empty for anything else. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** True for an error of a system call. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}

/** Adds the path to an error of a handle, which names only the call. @returns the same error */
export function naming(path: string, error: unknown): unknown {
  if (isSystemError(error) && !('path' in error)) {
    error.message += ` '${path}'`;
    Object.assign(error, { path });
  }
  return error;
}

/** True when an error says that a file, or a folder of its path, does not exist. */
export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(errorCode(error));
}

/** What is not there, or gone already, is no error. @throws any other error */
export function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

/** The names in a folder; none when it does not exist. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** The same, without blocking the process. */
export async function listNames(folder: string, recursive = false): Promise<string[]> {
  return (await readdir(folder, { recursive, encoding: 'utf8' }).catch(ignoreMissing)) ?? [];
}

/** Device and number of a file: another file of the same name has another. */
export function identityOf({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): string {
  return `${dev}:${ino}`;
}

/**
 * Opens a plain file. Refuses a symbolic link at the end of the path, a FIFO, a device and a folder.
 * @param flags one of the constants of this file
 * @throws NotFollowed, or the system's error
 */
export async function openPlain(path: string, flags: number, mode = 0o640): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(path, flags | NO_FOLLOW | NO_WAIT, mode);
  } catch (error) {
    // ELOOP: a symbolic link. ENXIO: a FIFO without a reader, or a socket.
    const code = errorCode(error);
    if (code === 'ELOOP') throw new NotFollowed(path, 'a symbolic link');
    if (code === 'ENXIO') throw new NotFollowed(path, 'a FIFO or a socket');
    throw error;
  }
  try {
    if ((await handle.stat()).isFile()) return handle;
    throw new NotFollowed(path, 'not a plain file');
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The text of a small file; null when there is none. @throws the system's error */
export function readIfThere(path: string): string | null {
  return bytesIfThere(path)?.toString() ?? null;
}

/** The bytes of a file; null when it does not exist. */
export function bytesIfThere(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Opens a file for reading; null when it, or a folder of its path, does not exist. */
export function openIfThere(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    ignoreMissing(error);
    return null;
  }
}

const CHUNK = 256 * 1024;

/**
 * The bytes of a plain file from `from` to `end`, a new buffer for each chunk. The file is closed when the caller stops reading.
 * @throws NotFollowed, or the system's error
 */
export async function* readPlain(
  path: string,
  end = Number.POSITIVE_INFINITY,
  from = 0,
): AsyncGenerator<Buffer> {
  const handle = await openPlain(path, READ);
  try {
    for (let at = from; at < end;) {
      const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK, end - at));
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } catch (error) {
    throw naming(path, error);
  } finally {
    await handle.close();
  }
}

/** Writes all of `data` at `position`, over as many calls as the system needs. */
export async function writeAll(handle: FileHandle, data: Buffer, position: number): Promise<void> {
  let done = 0;
  while (done < data.length) {
    const { bytesWritten } = await handle.write(data, done, data.length - done, position + done);
    done += bytesWritten;
  }
}

/** Writes all of the pieces, one after the other. @returns the number of bytes */
export async function writePieces(
  handle: FileHandle,
  pieces: readonly Buffer[],
  position: number,
): Promise<number> {
  const [first, ...others] = pieces;
  const size = pieces.reduce((sum, { length }) => sum + length, 0);
  if (first === undefined) return 0;
  if (others.length === 0) await writeAll(handle, first, position);
  else {
    const { bytesWritten } = await handle.writev(pieces, position);
    const rest = bytesWritten === size ? EMPTY : Buffer.concat(pieces).subarray(bytesWritten);
    await writeAll(handle, rest, position + bytesWritten);
  }
  return size;
}

const EMPTY = Buffer.alloc(0);

/** Makes the names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder for syncing, and does not need it.
  if (process.platform === 'win32') return;
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } catch (error) {
    throw naming(path, error);
  } finally {
    await handle.close();
  }
}

/** Makes the name of an existing file durable: the process that made it may have been killed before it synced the folder. */
export async function syncFound(path: string): Promise<void> {
  await syncFolder(dirname(path)).catch((error: unknown) => {
    if (!NOT_OURS.has(errorCode(error))) throw error;
  });
}

/** As `syncFolder`, synchronous. */
export function syncFolderNow(path: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Folders whose names this process has made durable, by path. A folder that exists may not be durable: the process that made it may
 * have been killed before it synced.
 */
const durable = new Map<string, string>();
const REMEMBERED = 10_000;

function noteDurable(path: string, identity: string): void {
  if (durable.size >= REMEMBERED) durable.clear();
  durable.set(path, identity);
}

/** Errors of syncing folders that belong to others; these folders existed before. */
const NOT_OURS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'EINVAL']);

/** The reason why a folder was not made: on a read-only file system Node says that the folder above is missing. */
export function whyNotMade(path: string, error: unknown): unknown {
  if (errorCode(error) !== 'ENOENT') return error;
  let level = resolve(path);
  while (!existsSync(dirname(level))) level = dirname(level);
  try {
    mkdirSync(level);
  } catch (reason) {
    if (errorCode(reason) !== 'EEXIST') return reason;
  }
  return error;
}

/** Makes a folder and those above it, all with durable names. Cheap when called again. @throws the system's error */
export function makeFolder(path: string, mode: number): void {
  const first = resolve(madeFirst(path, mode) ?? '/');
  for (let at = resolve(path); at !== dirname(at); at = dirname(at)) {
    const identity = identityOf(statSync(at, { bigint: true }));
    if (durable.get(at) === identity) return;
    try {
      syncFolderNow(dirname(at));
    } catch (error) {
      const isMade = first !== '/' && at.startsWith(first);
      if (isMade || !NOT_OURS.has(errorCode(error))) throw error;
    }
    noteDurable(at, identity);
  }
}

/** @returns the first folder that was missing */
function madeFirst(path: string, mode: number): string | undefined {
  try {
    return mkdirSync(path, { recursive: true, mode });
  } catch (error) {
    throw whyNotMade(path, error);
  }
}

/**
 * Makes `relative` below `root` with durable names. @returns its path
 * @param relative `/`-separated and safe; empty for the root itself
 * @throws NotFollowed when a level is a symbolic link or no folder
 */
export async function ensureFolder(root: string, relative: string): Promise<string> {
  let path = root;
  for (const level of relative.split('/')) {
    if (level === '') continue;
    path = join(path, level);
    const identity = await makeLevel(path);
    if (durable.get(path) === identity) continue;
    await syncFolder(dirname(path));
    noteDurable(path, identity);
  }
  return path;
}

/** @returns device and number of the folder */
async function makeLevel(path: string): Promise<string> {
  try {
    await mkdir(path, { mode: 0o750 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  const stats = await lstat(path, { bigint: true });
  if (stats.isSymbolicLink()) throw new NotFollowed(path, 'a symbolic link');
  if (!stats.isDirectory()) throw new NotFollowed(path, 'not a folder');
  return identityOf(stats);
}
