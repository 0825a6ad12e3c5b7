import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../core/errors.ts';
import type { SinkLog } from '../core/sink.ts';
import { orAborted } from '../lib/abort.ts';
import { isMissing, makeFolder } from '../lib/durable.ts';
import { tryLock, type FileLock } from '../lib/file-lock.ts';
import { stampOf } from './erased-list.ts';
import type { ErasedUsers } from './erased-users.ts';

const FOLDER = 'followers';
const LOCK = '.lock';
const SEEN = '.seen';
/** Milliseconds between two looks: here of what is in memory, there of small files. */
const LOOK_EVERY = 50;
/** Longest wait for those who have not let go yet. */
const PATIENCE = 30_000;

export interface FollowerOptions {
  /** The erasure folder. */
  readonly folder: string;
  readonly users: Pick<ErasedUsers, 'stamp'>;
  /** Resolves once nothing is on its way here any more of who is erased; rejects when that cannot be said. */
  readonly settle: () => Promise<void>;
  readonly log: SinkLog;
}

/**
 * A process of a fleet that follows the shared list of erased users. It holds a lock in the erasure folder for as long as it
 * lives, and says beside it up to which list nothing of the erased is on its way here: what was looked at before the list
 * changed may still be in a batch, or wait for a store to come back.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #path: string;
  readonly #lock: FileLock;
  readonly #end = new AbortController();
  readonly #running: Promise<void>;

  private constructor(options: FollowerOptions, path: string, lock: FileLock) {
    this.#options = options;
    this.#path = path;
    this.#lock = lock;
    this.#running = this.#run();
  }

  /** @returns null where the folder cannot be written: an erasure then does not wait for this process */
  static start(options: FollowerOptions): Follower | null {
    const { folder, log } = options;
    try {
      const home = join(folder, FOLDER);
      makeFolder(home, 0o700);
      const path = join(home, `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`);
      const lock = tryLock(path + LOCK);
      if (lock !== null) return new Follower(options, path, lock);
    } catch (error) {
      // Where there is none, and none can be made, nobody shares it.
      const fields = { path: folder, error: messageOf(error) };
      if (existsSync(folder))
        log.warn(fields, 'erasures of other processes will not wait for what is on its way here');
    }
    return null;
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
    await unlink(this.#path + SEEN).catch(() => undefined);
    this.#lock.release('remove');
  }

  async #run(): Promise<void> {
    const { users, settle, log } = this.#options;
    const { signal } = this.#end;
    let told: string | null = null;
    let failed: string | null = null;
    while (!signal.aborted) {
      const { stamp } = users;
      if (stamp !== told)
        try {
          await orAborted(settle(), signal);
          if (!signal.aborted) await writeFile(this.#path + SEEN, stamp, { mode: 0o600 });
          told = stamp;
        } catch (error) {
          if (failed !== stamp)
            log.warn({ error: messageOf(error) }, 'events of an erased user may still be on their way');
          failed = stamp;
        }
      await wait(LOOK_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

/**
 * Waits until all who follow the list, as it is now, have let go of what they had of those on it.
 * @returns who has not, when it has waited for long enough
 */
export async function untilFollowed(
  folder: string,
  signal: AbortSignal,
  patience = PATIENCE,
): Promise<readonly string[]> {
  const home = join(folder, FOLDER);
  for (const end = performance.now() + patience; ;) {
    const behind = await thoseBehind(home, stampOf(folder));
    if (behind.length === 0 || performance.now() >= end) return behind;
    await wait(LOOK_EVERY, undefined, { signal });
  }
}

async function thoseBehind(home: string, stamp: string): Promise<readonly string[]> {
  const names = await readdir(home).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const behind: string[] = [];
  for (const name of names) {
    if (!name.endsWith(LOCK)) continue;
    const path = join(home, name.slice(0, -LOCK.length));
    if ((await readFile(path + SEEN, 'utf8').catch(() => null)) === stamp) continue;
    // Nobody's: its process was killed, and has nothing on its way any more.
    const lock = tryLock(path + LOCK);
    if (lock === null) behind.push(name.slice(0, -LOCK.length));
    else {
      await unlink(path + SEEN).catch(() => undefined);
      lock.release('remove');
    }
  }
  return behind;
}
