import { statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, resolve } from 'node:path';
import { errorCode, isMissing } from './durable.ts';

const ROOT = 0;
/** With what its types leave out. */
const system: NodeJS.Process & { initgroups?(user: number, group: number): void } = process;

/**
 * Has a process of root act from now on as the user who owns a file or folder: its owner could not write what root creates there.
 * What is missing belongs to who owns the folder it will lie in. Nothing changes for others, or for what is root's.
 * @returns the name of the user that this process acts as now; null when nothing has changed
 * @throws the system's error where this root may not act as others
 */
export function actAsOwnerOf(path: string): string | null {
  if (process.geteuid?.() !== ROOT) return null;
  const { uid, gid } = ownerOf(resolve(path));
  if (uid === ROOT) return null;
  try {
    system.initgroups?.(uid, gid);
  } catch (error) {
    // Only its number is known here, as in many containers.
    if (errorCode(error) !== 'ERR_UNKNOWN_CREDENTIAL') throw error;
    process.setgroups?.([gid]);
  }
  process.setgid?.(gid);
  process.setuid?.(uid);
  return nameOf(uid);
}

function ownerOf(path: string): { readonly uid: number; readonly gid: number } {
  try {
    return statSync(path);
  } catch (error) {
    if (!isMissing(error) || dirname(path) === path) throw error;
    return ownerOf(dirname(path));
  }
}

function nameOf(uid: number): string {
  try {
    return userInfo().username;
  } catch {
    return String(uid);
  }
}
