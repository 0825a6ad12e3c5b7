import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { readAdvice, writeAdvice } from './advice.ts';
import { errorCode } from './durable.ts';

/** Whoever holds a lock; advice for people, never the lock itself. */
interface Owner {
  readonly command: string;
  readonly pid: number;
  readonly host: string;
}

/** Ends the name of the file beside a lock that says who holds it. */
const SUFFIX = '-owner';
let command = 'millrace';

/** Says what this process is called by those who find its locks. */
export function nameThisProcess(name: string): void {
  command = name;
}

/** @param lock path of the lock this process has just taken */
export function writeOwner(lock: string): void {
  const owner: Owner = { command, pid: process.pid, host: hostname() };
  try {
    writeAdvice(lock + SUFFIX, owner);
  } catch {
    // On a full disk the lock holds all the same.
  }
}

/** To be called while the lock is still held: afterwards the name may be another's. */
export function clearOwner(lock: string): void {
  try {
    rmSync(lock + SUFFIX, { force: true });
  } catch {
    // The next owner writes over it.
  }
}

/**
 * Who holds a lock, such as `backfill (process 4711)`; null when nobody of that name lives. A name can be stale: it is
 * written after the lock is taken, and a kill -9 leaves it behind.
 */
export function readOwner(lock: string): string | null {
  const owner = read(lock);
  return owner !== null && isAlive(owner) ? describe(owner) : null;
}

function describe({ command: name, pid, host }: Owner): string {
  return `${name} (process ${pid}${host === hostname() ? '' : ` on ${host}`})`;
}

function read(lock: string): Owner | null {
  const { command: name, pid, host }: Partial<Record<keyof Owner, unknown>> = readAdvice(lock + SUFFIX) ?? {};
  return isPlain(name) && isPlain(host) && Number.isSafeInteger(pid)
    ? { command: name, pid: Number(pid), host }
    : null;
}

/** It is printed, and whoever writes to the folder can have made it up. */
function isPlain(text: unknown): text is string {
  return typeof text === 'string' && /^[\w .-]{1,64}$/.test(text);
}

/** Another machine's processes cannot be asked for. */
function isAlive({ pid, host }: Owner): boolean {
  // A recycled number would give a wrong name, never a lock.
  return host !== hostname() || isRunning(pid);
}

/** Whether there is such a process; somebody else's counts too. */
export function isRunning(pid: number): boolean {
  try {
    // Signal 0 only asks.
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
