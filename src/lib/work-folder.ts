import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, readIfThere, whyNotMade } from './durable.ts';
import { writeDurably } from './new-file.ts';
import { own, type FileLock } from './file-lock.ts';
import { FolderRefused } from './folder-refused.ts';

const LOCK = '.millrace-lock';
const TRIES = 10;

/** A folder that one command at a time writes, whichever command that is. */
export class WorkFolder {
  readonly path: string;
  readonly #lock: FileLock;

  private constructor(path: string, lock: FileLock) {
    this.path = path;
    this.#lock = lock;
  }

  /**
   * Makes the folder if there is none, and holds it until `release` or the end of the process, however that comes.
   * @throws FolderRefused; NotFollowed, or the system's error
   */
  static async take(path: string, mode = 0o777): Promise<WorkFolder> {
    for (let tries = 1; ; tries += 1) {
      try {
        await mkdir(path, { recursive: true, mode });
        const refusal = (owner: string) =>
          new FolderRefused('in_use', `${path} is being written by ${owner}`);
        return new WorkFolder(path, await own(join(path, LOCK), refusal));
      } catch (error) {
        // Its last owner has just removed it.
        if (errorCode(error) !== 'ENOENT' || tries === TRIES) throw whyNotMade(path, error);
      }
    }
  }

  release(): void {
    this.#lock.release('remove');
  }
}

/** Where work for a URL is done, unless the user says where: one folder for each. */
export function workFolderFor(url: string): string {
  return join('data', 'work', encodeURIComponent(url));
}

/** A run that keeps in its folder how far it is. */
export interface Run {
  /** What it is called, such as `replay`. */
  readonly kind: string;
  /** Equal for those that can continue with each other's work. */
  readonly fingerprint: string;
  /** Whether this one may. */
  readonly resume: boolean;
  /** What to do about a run with another fingerprint. */
  readonly otherwise: string;
}

/**
 * Whether a run continues with what an earlier one has left in its folder.
 * @param left fingerprint of the earlier one; null when there is none, or all of it is done
 * @throws FolderRefused
 */
export function goesOn(folder: string, left: string | null, run: Run): boolean {
  const { kind, fingerprint, resume, otherwise } = run;
  if (left === null) return false;
  if (!resume)
    throw new FolderRefused(
      'not_ours',
      `${folder} holds an unfinished ${kind}: add --resume, or remove the folder to start over`,
    );
  if (left !== fingerprint)
    throw new FolderRefused('not_ours', `${folder} holds another ${kind}; ${otherwise}`);
  return true;
}

/** What was written of a run's state under a name; null when nothing was. @throws FolderRefused when it cannot be read */
export function readState(folder: string, name: string): unknown {
  const path = join(folder, name);
  try {
    const text = readIfThere(path);
    return text === null ? null : JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new FolderRefused('not_ours', `${path}: ${reason}`, { cause: error });
  }
}

/** Writes the state of a run as JSON. It is there whole or as it was before; durable once it resolves. */
export async function writeState(folder: string, name: string, state: object, mode?: number): Promise<void> {
  await writeDurably(folder, name, `${JSON.stringify(state)}\n`, mode);
}
