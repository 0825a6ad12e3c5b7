import { lstatSync, readlinkSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { errorCode } from './durable.ts';
import { visible } from './visible.ts';

const ROOT = 0;
/** With a function that its types lack. */
const system: NodeJS.Process & { initgroups?(user: number, group: number): void } = process;

/**
 * Whether this process may change its user. `off`, the first state: it does not, and refuses nothing, as in tests. `allowed`: set
 * by `main.ts`. `refused`: a service that has begun refuses what belongs to other users.
 */
let state: 'off' | 'allowed' | 'refused' = 'off';
let say: (line: string) => void = () => undefined;

/** @param onChange called when the user changes */
export function mayActAsOwners(onChange: (line: string) => void): void {
  state = 'allowed';
  say = onChange;
}

/** From now on, paths that belong to other users are refused. */
export function keepUser(): void {
  if (state === 'allowed') state = 'refused';
}

/**
 * A process of root acts from now on as the first other user who owns a part of the path: that user controls what is there, and
 * could not write what root creates there. Does nothing for other users, and for paths that are all root's.
 * @throws Error when this process may not change its user any more
 */
export function actAsOwnerOf(path: string): void {
  if (state === 'off' || process.geteuid?.() !== ROOT) return;
  const found = foreignPart(resolve(path));
  if (found === null) return;
  const { uid, gid } = found.stats;
  if (state === 'refused')
    throw new Error(`${found.path} belongs to user ${uid}, and this process runs as root`);
  try {
    system.initgroups?.(uid, gid);
  } catch (error) {
    // The user has no name here, as in many containers.
    if (errorCode(error) !== 'ERR_UNKNOWN_CREDENTIAL') throw error;
    process.setgroups?.([gid]);
  }
  process.setgid?.(gid);
  process.setuid?.(uid);
  say(visible(`acting as ${nameOf(uid)}, who owns ${found.path}`));
}

const MOST_LINKS = 40;

/** The first part of a path that is not root's, links followed one by one; null when there is none, or the rest is missing. */
function foreignPart(path: string): { readonly path: string; readonly stats: Stats } | null {
  // In a container `/` may belong to an unnamed user, who owns this program too.
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
