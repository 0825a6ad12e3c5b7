import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, readFile, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { orAborted } from '../../lib/abort.ts';
import { isMissing, listNames, makeFolder } from '../../lib/durable.ts';
import { tryLock, type FileLock } from '../../lib/file-lock.ts';
import type { ErasedUsers } from './erased-users.ts';

const FOLDER = 'followers';
const LOCK = '.lock';
const SEEN = '.seen';
/** Milliseconds between two looks: of a follower at the list in memory, of an erasure at its files. */
const LOOK_EVERY = 50;
/** Milliseconds between two looks at the follower's own lock, and of the first pause after a failure. */
const HOLD_EVERY = 1000;
const AFTER_FAILURE = 1000;
/** Longest wait for followers, and longest pause, in milliseconds. */
const PATIENCE = 30_000;

export interface FollowerOptions {
  /** The erasure folder. */
  readonly folder: string;
  readonly users: Pick<ErasedUsers, 'digest'>;
  /** Resolves once no event of an erased user is in flight in this process. */
  readonly settle: () => Promise<void>;
  readonly log: SinkLog;
}

/**
 * A process of a fleet that follows the shared list of erased users. It holds a lock in the erasure folder while it lives, and notes
 * beside it for which list it has no event of an erased user in flight: events accepted before the list changed may be in a
 * batch. A lock that was removed is taken again.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #end = new AbortController();
  readonly #running: Promise<void>;
  #lock: FollowerLock | null = null;
  #lookedAt = performance.now();
  /** Digests of the list that was settled, and of the one that was noted. */
  #settled: string | null = null;
  #noted: string | null = null;
  /** The last warning. */
  #warned = '';

  private constructor(options: FollowerOptions) {
    this.#options = options;
    this.#take();
    this.#running = this.#run();
  }

  static start(options: FollowerOptions): Follower {
    return new Follower(options);
  }

  /** @param isQuiet true when no event is in flight; otherwise the lock stays until the process ends */
  async stop(isQuiet: boolean): Promise<void> {
    this.#end.abort();
    await this.#running;
    if (this.#lock === null || !isQuiet) return;
    await unlink(this.#lock.path + SEEN).catch(() => undefined);
    this.#lock.file.release('remove');
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
        // Settling is costly: files are closed, and stores are written.
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
    if (this.#noted === digest || this.#lock === null) return;
    await writeFile(this.#lock.path + SEEN, digest, { mode: 0o600 });
    this.#noted = digest;
  }

  /** Checks every second that the lock is there, without blocking: the folder may not answer. */
  async #hold(): Promise<void> {
    const now = performance.now();
    if (now - this.#lookedAt < HOLD_EVERY) return;
    this.#lookedAt = now;
    const lock = this.#lock;
    const canTake =
      lock === null
        ? access(this.#options.folder, constants.W_OK).then(
            () => true,
            () => false,
          )
        : access(lock.path + LOCK).then(() => false, isMissing);
    if (await canTake) this.#take();
  }

  /** Takes the lock. In a folder that cannot be written there is none, and erasures do not wait for this process. */
  #take(): void {
    const { folder } = this.#options;
    try {
      const taken = takeLock(join(folder, FOLDER));
      this.#lock?.file.release('keep');
      this.#lock = taken;
      this.#noted = null;
    } catch (error) {
      // Without a folder there is no list to share.
      if (existsSync(folder))
        this.#warn('erasures of other processes will not wait for what is on its way here', error);
    }
  }

  /** Logs a warning, unless it is the same as the last one. */
  #warn(message: string, error: unknown): void {
    const detail = messageOf(error);
    if (this.#warned === message + detail) return;
    this.#warned = message + detail;
    this.#options.log.warn({ path: this.#options.folder, error: detail }, message);
  }
}

interface FollowerLock {
  /** Path of its files without their endings. */
  readonly path: string;
  readonly file: FileLock;
}

/** @throws the system's error when the folder cannot be written */
function takeLock(home: string): FollowerLock {
  makeFolder(home, 0o700);
  for (;;) {
    const path = join(home, `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`);
    // An erasure that has just looked may have it for a moment, as a dead one's.
    const lock = tryLock(path + LOCK);
    if (lock !== null) return { path, file: lock };
  }
}

/**
 * Waits until every follower has noted the current list.
 * @param patience milliseconds
 * @returns the names of the followers that have not
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
    const behind = await followersBehind(home, users.digest);
    if (behind.length === 0 || performance.now() >= end) return behind;
    await wait(LOOK_EVERY, undefined, { signal });
  }
}

async function followersBehind(home: string, digest: string): Promise<readonly string[]> {
  const names = await listNames(home);
  const behind: string[] = [];
  for (const name of names) {
    if (!name.endsWith(LOCK)) continue;
    const path = join(home, name.slice(0, -LOCK.length));
    if ((await readFile(path + SEEN, 'utf8').catch(() => null)) === digest) continue;
    // A lock that is free belongs to a process that has ended.
    const lock = tryLock(path + LOCK);
    if (lock === null) behind.push(name.slice(0, -LOCK.length));
    else {
      await unlink(path + SEEN).catch(() => undefined);
      lock.release('remove');
    }
  }
  return behind;
}
