import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from './durable.ts';
import { own, type FileLock } from './file-lock.ts';
import { FolderInUse } from './lock-owner.ts';

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
   * @throws FolderInUse; NotFollowed, or the system's error
   */
  static async take(path: string, mode = 0o777): Promise<WorkFolder> {
    for (let tries = 1; ; tries += 1) {
      try {
        await mkdir(path, { recursive: true, mode });
        const lock = await own(join(path, LOCK));
        if (typeof lock === 'string') throw new FolderInUse(path, lock);
        return new WorkFolder(path, lock);
      } catch (error) {
        // Its last owner has just removed it.
        if (errorCode(error) !== 'ENOENT' || tries === TRIES) throw error;
      }
    }
  }

  release(): void {
    this.#lock.release('remove');
  }
}
