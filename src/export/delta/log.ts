import { randomUUID } from 'node:crypto';
import { isMissing, nullIfMissing, readWhole, removePermanently } from '../../core/objects.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { type Action, ENGINE, parseCommit } from './actions.ts';
import { readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import { commitName, LOG_FOLDER, Snapshot } from './snapshot.ts';

/** Commits between two checkpoints, unless the table says otherwise. */
const INTERVAL = 10;
/** Each failed try is a commit of another writer. */
const TRIES = 1000;
/** A log that is cut while it is read is listed so many times. */
const LOADS = 10;

/** Purpose of a commit, as in its `commitInfo`. */
export interface Purpose {
  readonly operation: 'CREATE TABLE' | 'WRITE' | 'DELETE';
  readonly operationParameters: Readonly<Record<string, string>>;
}

/**
 * Makes the actions of a commit for the table as it is now; null when there is nothing to do. It is called again when another writer
 * was faster, so that it sees every change that could be in conflict.
 */
export type MakeActions = (
  snapshot: Snapshot,
) => readonly Action[] | null | Promise<readonly Action[] | null>;

/** The log of one Delta table: numbered commits, each an object that only one writer can write. */
export class DeltaLog {
  readonly store: ObjectStore;
  /** Key of the table's folder, with a `/` at its end, or empty. */
  readonly prefix: string;
  #snapshot = new Snapshot();

  constructor(store: ObjectStore, prefix: string) {
    this.store = store;
    this.prefix = prefix;
  }

  /** For messages. */
  get url(): string {
    return this.prefix === '' ? this.store.url : `${this.store.url}/${this.prefix.slice(0, -1)}`;
  }

  /** Key of a file in the log's folder. */
  key(name: string): string {
    return `${this.prefix}${LOG_FOLDER}/${name}`;
  }

  /** The table as it is now. @throws Error when the log cannot be read; StorageError */
  async snapshot(signal?: AbortSignal): Promise<Snapshot> {
    for (let tries = 1; ; tries += 1) {
      try {
        if (tries > 1 || !this.#snapshot.exists) return await this.#load(signal);
        while (await this.#next(signal));
        return this.#snapshot;
      } catch (error) {
        // A listed commit may be gone by now, because replacing files cuts the log.
        if (!isMissing(error) || tries === LOADS) throw error;
      }
    }
  }

  /**
   * Commits the actions that `make` returns, as the next version of the table.
   * @returns the version; null when there is nothing to do
   */
  async commit(purpose: Purpose, make: MakeActions, signal?: AbortSignal): Promise<number | null> {
    for (let tries = 1; tries <= TRIES; tries += 1) {
      signal?.throwIfAborted();
      const snapshot = await this.snapshot(signal);
      const actions = await make(snapshot);
      if (actions === null) return null;
      const version = snapshot.version + 1;
      const all: Action[] = [{ commitInfo: this.#info(purpose, snapshot, actions) }, ...actions];
      const bytes = Buffer.from(all.map((action) => `${JSON.stringify(action)}\n`).join(''));
      const put = await this.store.putIfAbsent(this.key(commitName(version)), { bytes }, signal);
      if (put.status === 'taken') continue;
      snapshot.apply(version, all);
      if (version - Math.max(snapshot.checkpoint, 0) >= intervalOf(snapshot)) await this.checkpoint(signal);
      return version;
    }
    throw new Error(`${this.url}: other writers were faster ${TRIES} times`);
  }

  /** Writes a checkpoint of the last version that was read, at which readers begin. */
  async checkpoint(signal?: AbortSignal): Promise<void> {
    const snapshot = this.#snapshot;
    // Also when it exists: its writer may have ended before it made it the last one.
    await writeCheckpoint(this, snapshot, signal);
    snapshot.checkpoint = snapshot.version;
  }

  #info(
    { operation, operationParameters }: Purpose,
    { version }: Snapshot,
    actions: readonly Action[],
  ): Record<string, unknown> {
    return {
      timestamp: Date.now(),
      operation,
      operationParameters,
      ...(version < 0 ? {} : { readVersion: version }),
      isBlindAppend: actions.every(({ remove, metaData }) => remove === undefined && metaData === undefined),
      engineInfo: ENGINE,
      // Makes its bytes unique, so that the store recognises it if the first answer was lost.
      txnId: randomUUID(),
    };
  }

  /** Version of the newest existing commit that has such a line; null for none. */
  async find(has: (action: Action) => boolean, signal?: AbortSignal): Promise<number | null> {
    const { commits } = await this.#versions(signal);
    for (const version of commits.toReversed()) {
      const actions = await this.#actions(version, signal).catch(nullIfMissing);
      if (actions?.some(has) === true) return version;
    }
    return null;
  }

  /** Reads the next commit. @returns false when there is none */
  async #next(signal?: AbortSignal): Promise<boolean> {
    const snapshot = this.#snapshot;
    const version = snapshot.version + 1;
    try {
      snapshot.apply(version, await this.#actions(version, signal));
      return true;
    } catch (error) {
      if (!isMissing(error)) throw error;
      // The log is cut only at its old end, so if there is a later version, the snapshot is too old to continue.
      const newest = (await this.#versions(signal)).commits.at(-1) ?? -1;
      if (newest > snapshot.version) throw error;
      return false;
    }
  }

  async #load(signal?: AbortSignal): Promise<Snapshot> {
    const { commits, checkpoints } = await this.#versions(signal);
    const snapshot = new Snapshot();
    const from = checkpoints.at(-1);
    if (from !== undefined) {
      snapshot.apply(from, await readCheckpoint(this, from, signal));
      snapshot.checkpoint = from;
    }
    for (const version of commits) {
      if (version <= snapshot.version) continue;
      if (version !== snapshot.version + 1)
        throw new Error(`${this.url}: its log lacks version ${snapshot.version + 1}`);
      snapshot.apply(version, await this.#actions(version, signal));
    }
    this.#snapshot = snapshot;
    return snapshot;
  }

  async #actions(version: number, signal?: AbortSignal): Promise<Action[]> {
    const name = commitName(version);
    const text = (await readWhole(this.store, this.key(name), signal)).toString();
    try {
      return parseCommit(text);
    } catch (error) {
      throw new Error(`${this.url}: ${name} is not a commit`, { cause: error });
    }
  }

  async #versions(signal?: AbortSignal): Promise<{ commits: number[]; checkpoints: number[] }> {
    const commits: number[] = [];
    const checkpoints: number[] = [];
    for await (const { key } of this.store.list(this.key(''), signal)) {
      const [, version, kind] = /\/(\d{20})\.(json|checkpoint\.parquet)$/.exec(key) ?? [];
      if (version === undefined) continue;
      (kind === 'json' ? commits : checkpoints).push(Number(version));
    }
    return { commits, checkpoints };
  }
}

function intervalOf({ metaData }: Snapshot): number {
  const wanted = Number(metaData?.configuration['delta.checkpointInterval']);
  return Number.isInteger(wanted) && wanted > 0 ? wanted : INTERVAL;
}

/**
 * Writes a checkpoint and deletes the log before a version, because old commits have statistics of removed files. Older versions of
 * the table cannot be read afterwards; their files are gone anyway.
 * @returns what the store keeps of it
 */
export async function forgetBefore(log: DeltaLog, version: number, signal?: AbortSignal): Promise<string[]> {
  await log.snapshot(signal);
  await log.checkpoint(signal);
  const old: string[] = [];
  for await (const { key } of log.store.list(log.key(''), signal)) {
    const [, of] = /\/(\d{20})\.[^/]+$/.exec(key) ?? [];
    if (of !== undefined && Number(of) < version) old.push(key);
  }
  // The oldest first, so that the rest has no gap after a crash.
  return removePermanently(log.store, old, signal);
}
