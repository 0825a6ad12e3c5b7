import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { orAborted } from '../../lib/abort.ts';
import { isMissing, makeFolder } from '../../lib/durable.ts';
import { tryLock, type FileLock } from '../../lib/file-lock.ts';
import type { ErasedUsers } from './erased-users.ts';

const FOLDER = 'followers';
const LOCK = '.lock';
const SEEN = '.seen';
/** Milliseconds between two looks: here of what is in memory, there of small files. */
const LOOK_EVERY = 50;
/** Milliseconds between two looks at one's own lock, and of the first pause after a failure. */
const HOLD_EVERY = 1000;
const AFTER_FAILURE = 1000;
/** Longest wait for those who have not let go yet, and longest pause. */
const PATIENCE = 30_000;

export interface FollowerOptions {
  /** The erasure folder. */
  readonly folder: string;
  readonly users: Pick<ErasedUsers, 'digest'>;
  /** Resolves once nothing is on its way here any more of who is erased; rejects when that cannot be said. */
  readonly settle: () => Promise<void>;
  readonly log: SinkLog;
}

/**
 * A process of a fleet that follows the shared list of erased users. It holds a lock in the erasure folder for as long as it
 * lives, and says beside it up to which list nothing of the erased is on its way here: what was looked at before the list
 * changed may still be in a batch, or wait for a store to come back. A lock that somebody has removed is taken anew.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #end = new AbortController();
  readonly #running: Promise<void>;
  #place: Place | null = null;
  #lookedAt = performance.now();
  /** Which list has been settled here, and which was told of. */
  #settled: string | null = null;
  #told: string | null = null;
  /** What was warned of. */
  #warned = '';

  private constructor(options: FollowerOptions) {
    this.#options = options;
    this.#take();
    this.#running = this.#run();
  }

  static start(options: FollowerOptions): Follower {
    return new Follower(options);
  }

  /** @param isQuiet whether nothing is on its way any more; else the lock goes with the process */
  async stop(isQuiet: boolean): Promise<void> {
    this.#end.abort();
    await this.#running;
    if (this.#place === null || !isQuiet) return;
    await unlink(this.#place.path + SEEN).catch(() => undefined);
    this.#place.lock.release('remove');
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    for (let pause = LOOK_EVERY; !signal.aborted;) {
      try {
        await this.#hold();
        await this.#settle();
        pause = LOOK_EVERY;
      } catch (error) {
        this.#warn('events of an erased user may still be on their way', error);
        // What it asks for is no small thing: files are closed, and stores written to.
        pause = pause === LOOK_EVERY ? AFTER_FAILURE : Math.min(pause * 2, PATIENCE);
      }
      await wait(pause, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #settle(): Promise<void> {
    const { users, settle } = this.#options;
    const { signal } = this.#end;
    const { digest } = users;
    if (this.#settled !== digest) {
      await orAborted(settle(), signal);
      if (signal.aborted) return;
      this.#settled = digest;
    }
    if (this.#told === digest || this.#place === null) return;
    await writeFile(this.#place.path + SEEN, digest, { mode: 0o600 });
    this.#told = digest;
  }

  /** Sees now and then that the lock is there, with calls that block nobody: the folder may not answer. */
  async #hold(): Promise<void> {
    const now = performance.now();
    if (now - this.#lookedAt < HOLD_EVERY) return;
    this.#lookedAt = now;
    if (this.#place === null) {
      const canWrite = await access(this.#options.folder, constants.W_OK).then(
        () => true,
        () => false,
      );
      if (canWrite) this.#take();
    } else {
      const isThere = await access(this.#place.path + LOCK).then(
        () => true,
        (error: unknown) => !isMissing(error),
      );
      if (!isThere) this.#take();
    }
  }

  /** Where the folder cannot be written there is no lock, and erasures do not wait for this process. */
  #take(): void {
    const { folder } = this.#options;
    try {
      const place = takePlace(join(folder, FOLDER));
      this.#place?.lock.release('keep');
      this.#place = place;
      this.#told = null;
    } catch (error) {
      // Where there is none, and none can be made, nobody shares it.
      if (existsSync(folder))
        this.#warn('erasures of other processes will not wait for what is on its way here', error);
    }
  }

  /** Once, until something else is to be said. */
  #warn(message: string, error: unknown): void {
    const detail = messageOf(error);
    if (this.#warned === message + detail) return;
    this.#warned = message + detail;
    this.#options.log.warn({ path: this.#options.folder, error: detail }, message);
  }
}

interface Place {
  /** Without its endings. */
  readonly path: string;
  readonly lock: FileLock;
}

/** @throws the system's error when the folder cannot be written */
function takePlace(home: string): Place {
  makeFolder(home, 0o700);
  for (;;) {
    const path = join(home, `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`);
    // An erasure that has just looked may have it for a moment, as a dead one's.
    const lock = tryLock(path + LOCK);
    if (lock !== null) return { path, lock };
  }
}

/**
 * Waits until all who follow the list, as it is now, have let go of what they had of those on it.
 * @returns who has not, when it has waited for long enough
 */
export async function untilFollowed(
  folder: string,
  users: Pick<ErasedUsers, 'refresh' | 'digest'>,
  signal: AbortSignal,
  patience = PATIENCE,
): Promise<readonly string[]> {
  const home = join(folder, FOLDER);
  for (const end = performance.now() + patience; ;) {
    users.refresh();
    const behind = await thoseBehind(home, users.digest);
    if (behind.length === 0 || performance.now() >= end) return behind;
    await wait(LOOK_EVERY, undefined, { signal });
  }
}

async function thoseBehind(home: string, digest: string): Promise<readonly string[]> {
  const names = await readdir(home).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const behind: string[] = [];
  for (const name of names) {
    if (!name.endsWith(LOCK)) continue;
    const path = join(home, name.slice(0, -LOCK.length));
    if ((await readFile(path + SEEN, 'utf8').catch(() => null)) === digest) continue;
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
