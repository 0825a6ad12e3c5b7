import { hash } from 'node:crypto';
import { leftBy, type ErasureRun } from '../../core/erasure.ts';
import type { IdSearch } from '../../core/id-search.ts';
import { isMissing, nullIfMissing, readWhole, removeForGood, timeAt } from '../../core/objects.ts';
import {
  type AddFile,
  keyOf,
  pathOf,
  removalOf,
  type RemoveFile,
  statsOf,
} from '../../export/delta/actions.ts';
import { type DeltaLog, forgetBefore } from '../../export/delta/log.ts';
import { hashChunks } from '../../lib/hash-chunks.ts';
import { bufferOf } from '../../export/parquet/stored-pages.ts';
import { rewriteName, type Snapshot, unsupported } from '../../export/delta/snapshot.ts';
import { storedFile } from '../../export/delta/stored-file.ts';
import { type Judged, NotFlat, withoutRows } from '../../export/delta/without-rows.ts';
import { isNamedIn, itemOf, type Partition, partitionIn, partitionOf } from './delta-partition.ts';
import { NOBODY, type LineOwners } from './file-kinds.ts';
import { mayHold } from './search-file.ts';

/** Times a table is looked through again because others have changed it. */
const PASSES = 20;
/** Milliseconds after which a file that no version lists has lost its writer. */
const ABANDONED_AFTER = 600_000;

export interface TableErasure {
  readonly log: DeltaLog;
  /** For receipts: the store, and the table's place in it, with a `/` at its end. */
  readonly name: string;
  readonly prefix: string;
  readonly run: ErasureRun;
  readonly search: IdSearch;
  readonly owners: LineOwners;
}

interface Found {
  readonly add: AddFile;
  readonly key: string;
  readonly judged: Judged;
}

/** Files put, and what a commit is to say of them and of those they replace. */
interface Replacing {
  readonly put: string[];
  readonly adds: AddFile[];
  readonly replaced: AddFile[];
}

/**
 * Takes the subjects' rows out of a Delta table: the files that hold some are written anew without them, in one commit, and
 * then the old files, and what the log says of older versions, go at once. Other programs may be writing: their commits are
 * waited for by trying again, and what they have added is looked through, too.
 */
export class DeltaTableErasure {
  readonly #about: TableErasure;
  /** Files that hold nothing of the subjects. */
  readonly #clean = new Set<string>();
  /** Files that could not be written anew: they stay. */
  readonly #kept = new Set<string>();

  constructor(about: TableErasure) {
    this.#about = about;
  }

  async erase(): Promise<void> {
    const { log, run } = this.#about;
    for (let pass = 1; pass <= PASSES; pass += 1) {
      const snapshot = await log.snapshot(run.signal);
      const reason = snapshot.exists ? unsupported(snapshot) : null;
      if (!snapshot.exists || reason !== null) {
        if (reason !== null)
          this.#leave('', NOBODY, `${reason}; delete the user's rows with a program that knows it`);
        return;
      }
      const { version: seen } = snapshot;
      const done = await this.#takeOut(snapshot).catch(async (error: unknown) => {
        // What others have replaced is gone: then the table is another by now.
        if (!isMissing(error) || (await log.snapshot(run.signal)).version === seen) throw error;
        return 'again' as const;
      });
      if (done === 'again') continue;
      // The log is needed as long as a file of it waits for another program.
      if (done === 'clean' && this.#kept.size > 0) return;
      await this.#clear(done === 'clean' ? null : done);
      if (done === 'clean') return;
    }
    const { name, prefix } = this.#about;
    run.leave(
      leftBy(
        name,
        prefix,
        run.subjects,
        new Error('other programs change the table faster than it can be searched'),
      ),
    );
  }

  /** @returns the version in which the rows are gone; or that there were none, or that all is to be looked at again */
  async #takeOut(snapshot: Snapshot): Promise<number | 'clean' | 'again'> {
    const found = await this.#find(snapshot);
    return found.length === 0 ? 'clean' : ((await this.#replace(found)) ?? 'again');
  }

  /** Active files that hold rows of the subjects. */
  async #find(snapshot: Snapshot): Promise<Found[]> {
    const found: Found[] = [];
    for (const add of snapshot.files.values()) {
      if (this.#clean.has(add.path) || this.#kept.has(add.path)) continue;
      const key = keyOf(add.path);
      const judged = key === null ? null : await this.#judge(key, add.size, partitionOf(add.partitionValues));
      if (key !== null && judged !== null && judged.removed.size > 0) found.push({ add, key, judged });
      else this.#clean.add(add.path);
      if (key === null) this.#leave(add.path, NOBODY, 'a file outside of its table is not searched');
    }
    if (found.length > 0) this.#about.run.onStep('found');
    return found;
  }

  /** @returns null when it cannot be searched, and the receipt says so */
  async #judge(key: string, size: number, fixed: Partition): Promise<Judged | null> {
    const { log, run, search, owners } = this.#about;
    run.signal.throwIfAborted();
    const file = storedFile(log.store, log.prefix + key, size, run.signal);
    try {
      const judged = await withoutRows(file, {
        fixed,
        mayHold: (value) => mayHold(value, search),
        whose: (row) => owners.ofLine(row),
      });
      run.searched(judged.searched);
      return judged;
    } catch (error) {
      if (!(error instanceof NotFlat)) throw error;
      // What its partition says of it is known all the same.
      const requests = isNamedIn(fixed, search) ? owners.ofLine(Buffer.from(JSON.stringify(fixed))) : NOBODY;
      this.#leave(key, requests, `${error.message}; delete the user's rows with another program`);
      return null;
    }
  }

  /** @returns the version in which the rows are gone; null when others were faster, and all is to be looked at again */
  async #replace(found: readonly Found[]): Promise<number | null> {
    const { log, run } = this.#about;
    const put: string[] = [];
    const adds: AddFile[] = [];
    const replaced: AddFile[] = [];
    try {
      for (const one of found) await this.#putRest(one, { put, adds, replaced });
    } catch (error) {
      // No version lists them, and they hold other users.
      await removeForGood(log.store, put);
      throw error;
    }
    // Without those that stay, the table is looked at again.
    if (replaced.length === 0) return null;
    run.onStep('written');
    let isStale = false;
    const version = await log.commit(PURPOSE, ({ files }) => {
      isStale = replaced.some((add) => files.get(add.path)?.size !== add.size);
      if (isStale) return null;
      const removes = replaced.map((add) => removalOf(add));
      return [...removes, ...adds.map((add) => ({ add }))];
    });
    if (version === null) await removeForGood(log.store, put, run.signal);
    else run.onStep('replaced');
    return version;
  }

  /** Writes what is left of a file beside it. */
  async #putRest({ add, key, judged }: Found, { put, adds, replaced }: Replacing): Promise<void> {
    const { log, search } = this.#about;
    // What is left of it would still be called after the subject.
    if (judged.rest?.rows === 0 && isNamedIn(partitionOf(add.partitionValues), search)) {
      replaced.push(add);
      await this.#record(key, judged, null);
      return;
    }
    const rest = rewriteName(key);
    put.push(log.prefix + rest);
    const bytes = await this.#put(log.prefix + rest, judged);
    if (bytes === null) {
      put.pop();
      this.#kept.add(add.path);
      this.#leave(key, [...judged.removed.keys()], UNLIKE);
      return;
    }
    replaced.push(add);
    const stats = statsOf(bytes);
    adds.push({ ...add, path: pathOf(rest), size: bytes.length, modificationTime: Date.now(), stats });
    await this.#record(key, judged, hash('sha256', bytes));
  }

  async #record(key: string, judged: Judged, after: string | null): Promise<void> {
    const { log, run, name, prefix, search } = this.#about;
    const removed = Object.fromEntries(judged.removed);
    const { sha256 } = await hashChunks(log.store.get(log.prefix + key, { signal: run.signal }));
    const hashes = { sha256_before: sha256, sha256_after: after };
    await run.record({ store: name, item: itemOf(prefix + key, search), removed, ...hashes });
  }

  /** @returns what is left of a file, and has been read back; null when that is not what it has to be */
  async #put(key: string, { rest }: Judged): Promise<Buffer | null> {
    const { log, run } = this.#about;
    if (rest === null) throw new TypeError('nothing goes');
    await log.store.putIfAbsent(key, { bytes: rest.bytes }, run.signal);
    const stored = await readWhole(log.store, key, run.signal);
    // What cannot be read at all is not right either.
    const isRight = stored.equals(rest.bytes) && (await rest.isIn(bufferOf(stored)).catch(() => false));
    run.signal.throwIfAborted();
    if (isRight) return rest.bytes;
    await removeForGood(log.store, [key], run.signal);
    return null;
  }

  /**
   * Removes what no version needs any more and still holds the subjects: files that were replaced, and the older log. The
   * log goes first: while a file is there, the next run finds what is to be done. When it calls files after a
   * subject it goes last: while it does, the next run finds that.
   */
  async #clear(committed: number | null): Promise<void> {
    const { log, run, search } = this.#about;
    const snapshot = await log.snapshot(run.signal);
    const old = await this.#oldFiles(snapshot);
    const isNamed = ({ path, partitionValues }: RemoveFile): boolean =>
      isNamedIn({ ...partitionIn(keyOf(path) ?? path), ...partitionOf(partitionValues ?? {}) }, search);
    const areNamed = [...snapshot.tombstones.values()].some(isNamed);
    const kept = areNamed ? await removeForGood(log.store, old, run.signal) : [];
    let version = committed;
    if (areNamed || (version === null && (old.length > 0 || (await isInLog(log, search, run.signal)))))
      version = await log.commit(PURPOSE, ({ tombstones }) => {
        // The checkpoint would go on saying what they were called.
        for (const tombstone of tombstones.values())
          if (isNamed(tombstone)) tombstones.delete(tombstone.path);
        return [];
      });
    if (version !== null) kept.push(...(await forgetBefore(log, version, run.signal)));
    run.onStep('forgotten');
    if (!areNamed) kept.push(...(await removeForGood(log.store, old, run.signal)));
    run.onStep('removed');
    for (const reason of kept) this.#leave('', this.#requests, reason);
  }

  /** Files that hold rows of the subjects, and are no part of the table. */
  async #oldFiles(snapshot: Snapshot): Promise<string[]> {
    const { log, run } = this.#about;
    const active = new Set([...snapshot.files.keys()].map(keyOf));
    const removed = new Map(
      Array.from(snapshot.tombstones.values(), ({ path, partitionValues }) => [keyOf(path), partitionValues]),
    );
    const old: string[] = [];
    let now: number | null = null;
    for await (const { key, bytes, modifiedAt } of log.store.list(log.prefix, run.signal)) {
      const own = key.slice(log.prefix.length);
      if (
        !own.endsWith('.parquet') ||
        own.startsWith('_delta_log/') ||
        active.has(own) ||
        this.#clean.has(key)
      )
        continue;
      const fixed = { ...partitionIn(own), ...partitionOf(removed.get(own) ?? {}) };
      const judged = await this.#judge(own, bytes, fixed).catch(nullIfMissing);
      if (judged === null || judged.removed.size === 0) this.#clean.add(key);
      else if (
        removed.has(own) ||
        (now ??= await timeAt(log.store, run.signal)) - modifiedAt >= ABANDONED_AFTER
      )
        old.push(key);
      else
        this.#leave(
          own,
          [...judged.removed.keys()],
          'another program has written it a moment ago, and not yet used it',
        );
    }
    return old;
  }

  get #requests(): string[] {
    return this.#about.run.subjects.map(({ request }) => request);
  }

  #leave(item: string, requests: readonly string[], reason: string): void {
    const { run, name, prefix, search } = this.#about;
    run.leave({ store: name, item: itemOf(prefix + item, search), requests, reason });
  }
}

const UNLIKE =
  "what was to be left of it did not read back as it was; delete the user's rows with another program";
/** Says nothing of whose rows they were. */
const PURPOSE = { operation: 'DELETE', operationParameters: {} } as const;

/** Whether what the log says of files (the bounds that other programs write there) names a subject. */
async function isInLog(log: DeltaLog, search: IdSearch, signal: AbortSignal): Promise<boolean> {
  for await (const { key } of log.store.list(log.key(''), signal)) {
    if (!key.endsWith('.json')) continue;
    const commit = await readWhole(log.store, key, signal).catch(nullIfMissing);
    if (commit !== null && search.finds(commit)) return true;
  }
  return false;
}
