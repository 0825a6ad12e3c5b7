import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { readAdvice, writeAdvice } from './advice.ts';
import { errorCode } from './durable.ts';

/** Suffix of the file beside a lock that names its owner: information for people, not the lock. */
const SUFFIX = '-owner';
let command = 'millrace';

/** Sets the name of this process that others read beside its locks. */
export function nameThisProcess(name: string): void {
  command = name;
}

/** @param lock path of the lock this process has just taken. @param name of the work; default: this process's name */
export function writeOwner(lock: string, name = command): void {
  try {
    writeAdvice(lock + SUFFIX, { command: name, pid: process.pid, host: hostname() });
  } catch {
    // The lock is valid without it, as on a full disk.
  }
}

/** Called while this process has the lock: afterwards the file may be another's. */
export function clearOwner(lock: string): void {
  try {
    rmSync(lock + SUFFIX, { force: true });
  } catch {
    // The next owner replaces it.
  }
}

/**
 * Who has a lock, such as `backfill (process 4711)`; null when that process does not run. A name can be stale: it is written after the
 * lock is taken, and a kill -9 leaves it there.
 */
export function readOwner(lock: string): string | null {
  const { command: name, pid, host } = readAdvice(lock + SUFFIX);
  if (!isPlain(name) || !isPlain(host) || typeof pid !== 'number' || !Number.isSafeInteger(pid)) return null;
  const isHere = host === hostname();
  // Processes of other machines count as running. A reused process id gives a wrong name, never a wrong lock.
  if (isHere && !isRunning(pid)) return null;
  return `${name} (process ${pid}${isHere ? '' : ` on ${host}`})`;
}

/** The name is printed, and anyone who can write to the folder may have made it up. */
function isPlain(text: unknown): text is string {
  return typeof text === 'string' && /^[\w .-]{1,64}$/.test(text);
}

/** True when there is such a process, also of another user. */
export function isRunning(pid: number): boolean {
  try {
    // Signal 0 only asks.
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
