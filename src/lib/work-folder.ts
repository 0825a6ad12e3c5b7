import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, namesIn, readIfThere, syncFolder, whyNotMade } from './durable.ts';
import { writeDurably } from './new-file.ts';
import { own, type FileLock } from './file-lock.ts';
import { FolderRefused } from './folder-refused.ts';

const LOCK = '.millrace-lock';
const TRIES = 10;

/** A folder that one command at a time writes. */
export class WorkFolder {
  readonly path: string;
  readonly #lock: FileLock;

  private constructor(path: string, lock: FileLock) {
    this.path = path;
    this.#lock = lock;
  }

  /**
   * Makes the folder if it is missing, and locks it until `release` or the end of the process.
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

/** The default work folder for a URL. */
export function workFolderFor(url: string): string {
  return join('data', 'work', encodeURIComponent(url));
}

/** A run that keeps its progress in its folder. */
export interface Run {
  /** Such as `replay`. */
  readonly kind: string;
  /** Equal for runs that can continue each other. */
  readonly fingerprint: string;
  /** True when the user allows this run to continue another. */
  readonly resume: boolean;
  /** Advice for the error when the fingerprint differs. */
  readonly otherwise: string;
}

/**
 * True when a run continues an earlier one in its folder.
 * @param left fingerprint of the unfinished earlier run; null without one
 * @throws FolderRefused
 */
export function continuesRun(folder: string, left: string | null, run: Run): boolean {
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

/** The state of a run that has ended: its folder is being removed. */
const ENDED = JSON.stringify({ ended: true });

/** A saved state; null when there is none, or the run has ended. @throws FolderRefused when it cannot be read */
export function readState(folder: string, name: string): unknown {
  const path = join(folder, name);
  try {
    const text = readIfThere(path);
    return text === null || text.trim() === ENDED ? null : JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new FolderRefused('not_ours', `${path}: ${reason}`, { cause: error });
  }
}

/** Replaces a state, as JSON; durable once it resolves. A crash leaves the old or the new one. */
export async function writeState(folder: string, name: string, state: object, mode?: number): Promise<void> {
  await writeDurably(folder, name, `${JSON.stringify(state)}\n`, mode);
}

/** Removes the folder of a run, its state last: without a state what is there has lost it. A crash leaves a run that has ended. */
export async function removeRun(folder: string, state: string): Promise<void> {
  const names = namesIn(folder);
  if (names.length > 0) await writeDurably(folder, state, `${ENDED}\n`);
  for (const name of names)
    if (name !== state) await rm(join(folder, name), { recursive: true, force: true });
  if (names.length > 0) await syncFolder(folder);
  await rm(folder, { recursive: true, force: true });
}
