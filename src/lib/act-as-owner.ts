import { lstatSync, readlinkSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { errorCode } from './durable.ts';
import { visible } from './visible.ts';

const ROOT = 0;
/** With what its types leave out. */
const system: NodeJS.Process & { initgroups?(user: number, group: number): void } = process;

/**
 * Whether this process may change its user. A process begins `fixed-and-blind`, as the tests' does; `main.ts` makes it `free`;
 * a service that has begun is `fixed`.
 */
let state: 'fixed-and-blind' | 'free' | 'fixed' = 'fixed-and-blind';
let say: (line: string) => void = () => undefined;

/** @param tell called when the user changes */
export function mayActAsOwners(tell: (line: string) => void): void {
  state = 'free';
  say = tell;
}

/** From now on what belongs to another user is refused. */
export function keepUser(): void {
  if (state === 'free') state = 'fixed';
}

/**
 * Has a process of root act from now on as the first user, other than root, who owns a part of the way to a file or folder: that
 * user decides what lies there, and could not write what root creates there. Nothing changes for others, or where all is root's.
 * @throws Error where this root may not act as others, or not any more
 */
export function actAsOwnerOf(path: string): void {
  if (state === 'fixed-and-blind' || process.geteuid?.() !== ROOT) return;
  const found = strangerOnWay(resolve(path));
  if (found === null) return;
  const { uid, gid } = found.stats;
  if (state === 'fixed')
    throw new Error(`${found.path} belongs to user ${uid}, and this process runs as root`);
  try {
    system.initgroups?.(uid, gid);
  } catch (error) {
    // Only its number is known here, as in many containers.
    if (errorCode(error) !== 'ERR_UNKNOWN_CREDENTIAL') throw error;
    process.setgroups?.([gid]);
  }
  process.setgid?.(gid);
  process.setuid?.(uid);
  say(visible(`acting as ${nameOf(uid)}, who owns ${found.path}`));
}

const MOST_LINKS = 40;

/** The first part of a way that is not root's, with links followed one by one; what is missing is nobody's. */
function strangerOnWay(path: string): { readonly path: string; readonly stats: Stats } | null {
  // Where root is root of a container only, `/` may be of a user it cannot name; who owns that owns this program too.
  const trusted = new Set([ROOT, lstatSync('/').uid]);
  const left = partsOf(path);
  let at = '/';
  let links = 0;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    const next = join(at, name);
    const stats = lstatSync(next, { throwIfNoEntry: false });
    if (stats === undefined) return null;
    if (!trusted.has(stats.uid)) return { path: next, stats };
    if (!stats.isSymbolicLink()) at = next;
    else {
      if ((links += 1) > MOST_LINKS) throw new Error(`${path}: too many links`);
      const target = readlinkSync(next);
      if (isAbsolute(target)) at = '/';
      left.unshift(...partsOf(target));
    }
  }
  return null;
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function nameOf(uid: number): string {
  try {
    return userInfo().username;
  } catch {
    return String(uid);
  }
}
