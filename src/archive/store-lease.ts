import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { MillraceError } from '../core/errors.ts';
import { readWhole, timeAt } from '../core/objects.ts';
import type { ObjectStore, StoredObject } from '../core/storage.ts';
import { isRunning } from '../lib/lock-owner.ts';
import { membersIn } from '../lib/parsed.ts';
import { Serial } from '../lib/serial.ts';

/** Names the process that compacts the archive; erasures wait for its end. */
const KEY = '_open/compaction.json';
const RENEW_EVERY_MS = 60_000;
/** A lease that was not renewed for so long has lost its process. */
const STALE_MS = 600_000;

/** The right to compact an archive in a store. A process that stood still can lose it: `check` finds out. */
export class StoreLease {
  readonly #store: ObjectStore;
  #version: string;
  readonly #serial = new Serial();
  readonly #timer: NodeJS.Timeout;

  private constructor(store: ObjectStore, version: string) {
    this.#store = store;
    this.#version = version;
    this.#timer = setInterval(() => void this.#serial.run(() => this.#renew()), RENEW_EVERY_MS);
    this.#timer.unref();
  }

  /** @throws MillraceError archive_in_use, StorageError */
  static async take(store: ObjectStore): Promise<StoreLease> {
    const put = await store.putIfAbsent(KEY, { bytes: bytes() });
    if (put.status === 'written') return new StoreLease(store, put.version);
    const there = await store.head(KEY);
    const owner = there === null ? 'another process' : await ownerOf(store, there);
    const taken =
      there === null || owner !== null
        ? null
        : await store.putIfMatch(KEY, there.version, { bytes: bytes() });
    if (taken?.status === 'written') return new StoreLease(store, taken.version);
    throw new MillraceError(
      'archive_in_use',
      `${store.url} is being compacted by ${owner ?? 'another process'}; if that was killed, run this again in ten minutes`,
    );
  }

  /** @throws MillraceError archive_in_use when another has taken over */
  async check(): Promise<void> {
    const isOurs = await this.#serial.run(
      async () => (await this.#store.head(KEY))?.version === this.#version,
    );
    if (!isOurs)
      throw new MillraceError(
        'archive_in_use',
        `${this.#store.url}: another process has taken over from this one`,
      );
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#serial.run(() => this.#store.delete(KEY, this.#version));
  }

  /** Never rejects. */
  async #renew(): Promise<void> {
    try {
      const put = await this.#store.putIfMatch(KEY, this.#version, { bytes: bytes() });
      if (put.status === 'written') this.#version = put.version;
    } catch {
      // The next try may succeed.
    }
  }
}

/**
 * The process that compacts the archive now; null without one. The lease of a killed one is removed.
 * @returns `ended` when a lease was removed
 */
export async function compactingIn(
  store: ObjectStore,
): Promise<{ readonly by: string; readonly ended: boolean } | null> {
  const there = await store.head(KEY);
  if (there === null) return null;
  const owner = await ownerOf(store, there);
  if (owner !== null) return { by: owner, ended: false };
  const isEnded = (await store.delete(KEY, there.version)) === 'removed';
  return { by: isEnded ? 'a process that was killed' : 'another process', ended: isEnded };
}

function bytes(): Buffer {
  const own = { host: hostname(), process: process.pid, id: randomUUID() };
  return Buffer.from(`${JSON.stringify(own)}\n`);
}

/** Null for a process that no longer runs. */
async function ownerOf(store: ObjectStore, { modifiedAt }: StoredObject): Promise<string | null> {
  const { host, process: id } = membersIn(String(await readWhole(store, KEY)));
  if (host === hostname() && typeof id === 'number' && !isRunning(id)) return null;
  if ((await timeAt(store)) - modifiedAt > STALE_MS) return null;
  return `process ${String(id)} on ${String(host)}`;
}
