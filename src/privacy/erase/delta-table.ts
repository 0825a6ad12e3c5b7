import { hash } from 'node:crypto';
import type { IdSearch } from './id-search.ts';
import { isMissing, nullIfMissing, readWhole, removePermanently, timeAt } from '../../core/objects.ts';
import {
  type AddFile,
  keyOf,
  pathOf,
  removalOf,
  type RemoveFile,
  statsOf,
} from '../../export/delta/actions.ts';
import { type DeltaLog, forgetBefore } from '../../export/delta/log.ts';
import { bufferOf } from '../../export/parquet/stored-pages.ts';
import { rewriteName, type Snapshot, unsupported } from '../../export/delta/snapshot.ts';
import { storedFile } from '../../export/delta/stored-file.ts';
import { type Judged, NotFlat, withoutRows } from '../../export/delta/without-rows.ts';
import { hashChunks } from '../../lib/hash-chunks.ts';
import { isNamedIn, itemOf, type Partition, partitionIn, partitionOf } from './delta-partition.ts';
import type { PlaceRun } from './place-run.ts';
import { mayHold } from './search-file.ts';

/** Times a table is searched again because other programs have changed it. */
const PASSES = 20;
/** Milliseconds after which a file that no version lists has lost its writer. */
const ABANDONED_AFTER = 600_000;
/** Of the commits of an erasure; says nothing of whose rows they were. */
const PURPOSE = { operation: 'DELETE', operationParameters: {} } as const;

/** An active file that holds rows of the subjects. */
interface Found {
  readonly add: AddFile;
  readonly key: string;
  readonly judged: Judged;
}

/** A file that a commit removes, and the rewritten file that it adds. */
interface Replacement {
  readonly old: AddFile;
  /** Null when the file is only removed. */
  readonly rest: AddFile | null;
}

/**
 * Erases the subjects' rows from a Delta table: files that hold some are rewritten without them, in one commit; then the old
 * files and older versions of the log are removed. After a commit of another program the table is searched again.
 */
export class DeltaTableErasure {
  readonly #place: PlaceRun;
  readonly #log: DeltaLog;
  /** Keys of files that hold no rows of the subjects, and paths of files outside of the table. */
  readonly #clean = new Set<string>();
  /** Keys of files that could not be rewritten: they stay. */
  readonly #kept = new Set<string>();

  constructor(place: PlaceRun, log: DeltaLog) {
    this.#place = place;
    this.#log = log;
  }

  async erase(): Promise<void> {
    const { signal } = this.#place.run;
    for (let pass = 1; pass <= PASSES; pass += 1) {
      const snapshot = await this.#log.snapshot(signal);
      if (!snapshot.exists) return;
      const reason = unsupported(snapshot);
      if (reason !== null)
        return this.#leave('', [], `${reason}; delete the user's rows with a program that knows it`);
      const { version: seen } = snapshot;
      const done = await this.#takeOut(snapshot).catch(async (error: unknown) => {
        // Another program has replaced the file.
        if (!isMissing(error) || (await this.#log.snapshot(signal)).version === seen) throw error;
        return 'again' as const;
      });
      if (done === 'again') continue;
      // Files that stay need the log.
      if (done === 'clean' && this.#kept.size > 0) return;
      await this.#clear(done === 'clean' ? null : done);
      if (done === 'clean') return;
    }
    const reason = new Error('other programs change the table faster than it can be searched');
    this.#place.leaveFailed(this.#log.prefix, reason);
  }

  /** @returns the version without the rows; `clean` when there were none, `again` when the table has to be searched again */
  async #takeOut(snapshot: Snapshot): Promise<number | 'clean' | 'again'> {
    const found = await this.#find(snapshot);
    return found.length === 0 ? 'clean' : ((await this.#replace(found)) ?? 'again');
  }

  async #find(snapshot: Snapshot): Promise<Found[]> {
    const found: Found[] = [];
    for (const add of snapshot.files.values()) {
      const key = keyOf(add.path);
      const name = key ?? add.path;
      if (this.#clean.has(name) || this.#kept.has(name)) continue;
      const judged = key === null ? null : await this.#judge(key, add.size, partitionOf(add.partitionValues));
      if (key !== null && judged !== null && judged.removed.size > 0) found.push({ add, key, judged });
      else this.#clean.add(name);
      if (key === null) this.#leave(add.path, [], 'a file outside of its table is not searched');
    }
    if (found.length > 0) this.#place.run.onStep('found');
    return found;
  }

  /** Finds the subjects' rows in a file. @returns null when it cannot be searched: then it was reported */
  async #judge(key: string, size: number, fixed: Partition): Promise<Judged | null> {
    const { run, search, owners } = this.#place;
    run.signal.throwIfAborted();
    const file = storedFile(this.#log.store, this.#log.prefix + key, size, run.signal);
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
      // Its partition can name a subject all the same.
      const requests = isNamedIn(fixed, search) ? owners.ofLine(Buffer.from(JSON.stringify(fixed))) : [];
      this.#leave(key, requests, `${error.message}; delete the user's rows with another program`);
      return null;
    }
  }

  /** @returns the version without the rows; null when another program was faster, or no file could be rewritten */
  async #replace(found: readonly Found[]): Promise<number | null> {
    const { run } = this.#place;
    const { store } = this.#log;
    const put: string[] = [];
    const replacements: Replacement[] = [];
    try {
      for (const one of found) replacements.push(...(await this.#putRest(one, put)));
    } catch (error) {
      // No version lists them, and they hold other users' rows.
      await removePermanently(store, put);
      throw error;
    }
    if (replacements.length === 0) return null;
    run.onStep('written');
    const version = await this.#log.commit(PURPOSE, ({ files }) => {
      if (replacements.some(({ old }) => files.get(old.path)?.size !== old.size)) return null;
      const removes = replacements.map(({ old }) => removalOf(old));
      return [...removes, ...replacements.flatMap(({ rest: add }) => (add === null ? [] : [{ add }]))];
    });
    if (version === null) await removePermanently(store, put, run.signal);
    else run.onStep('replaced');
    return version;
  }

  /** Writes the rest of a file beside it. @param put gets its key @returns nothing when the file has to stay */
  async #putRest({ add, key, judged }: Found, put: string[]): Promise<Replacement[]> {
    // Nothing is left of it but a name after the subject.
    if (judged.rest?.rows === 0 && isNamedIn(partitionOf(add.partitionValues), this.#place.search)) {
      await this.#record(key, judged, null);
      return [{ old: add, rest: null }];
    }
    const name = rewriteName(key);
    put.push(this.#log.prefix + name);
    const bytes = await this.#put(this.#log.prefix + name, judged);
    if (bytes === null) {
      put.pop();
      this.#kept.add(key);
      const reason =
        "its rewritten file did not read back as written; delete the user's rows with another program";
      this.#leave(key, [...judged.removed.keys()], reason);
      return [];
    }
    await this.#record(key, judged, hash('sha256', bytes));
    const facts = { size: bytes.length, modificationTime: Date.now(), stats: statsOf(bytes) };
    return [{ old: add, rest: { ...add, path: pathOf(name), ...facts } }];
  }

  async #record(key: string, judged: Judged, after: string | null): Promise<void> {
    const { run, name, search } = this.#place;
    const { store, prefix } = this.#log;
    const { sha256 } = await hashChunks(store.get(prefix + key, { signal: run.signal }));
    await run.record({
      store: name,
      item: itemOf(prefix + key, search),
      removed: Object.fromEntries(judged.removed),
      sha256_before: sha256,
      sha256_after: after,
    });
  }

  /** Puts the rest of a file, and reads it back. @returns its bytes; null when these are not what was put */
  async #put(key: string, { rest }: Judged): Promise<Buffer | null> {
    const { signal } = this.#place.run;
    const { store } = this.#log;
    if (rest === null) throw new TypeError('no row is removed');
    await store.putIfAbsent(key, { bytes: rest.bytes }, signal);
    const stored = await readWhole(store, key, signal);
    const isRight = stored.equals(rest.bytes) && (await rest.isIn(bufferOf(stored)).catch(() => false));
    signal.throwIfAborted();
    if (isRight) return rest.bytes;
    await removePermanently(store, [key], signal);
    return null;
  }

  /**
   * Removes the old files and the older log. The log goes first: while an old file is there, the next run finds it. When the log
   * names files after a subject it goes last: while it does, the next run finds that.
   */
  async #clear(committed: number | null): Promise<void> {
    const { run, search } = this.#place;
    const log = this.#log;
    const snapshot = await log.snapshot(run.signal);
    const old = await this.#oldFiles(snapshot);
    const isNamed = ({ path, partitionValues }: RemoveFile): boolean =>
      isNamedIn({ ...partitionIn(keyOf(path) ?? path), ...partitionOf(partitionValues ?? {}) }, search);
    const areNamed = [...snapshot.tombstones.values()].some(isNamed);
    const left = areNamed ? await removePermanently(log.store, old, run.signal) : [];
    let version = committed;
    if (areNamed || (version === null && (old.length > 0 || (await isInLog(log, search, run.signal)))))
      version = await log.commit(PURPOSE, ({ tombstones }) => {
        // The checkpoint would still contain their names.
        for (const tombstone of tombstones.values())
          if (isNamed(tombstone)) tombstones.delete(tombstone.path);
        return [];
      });
    if (version !== null) left.push(...(await forgetBefore(log, version, run.signal)));
    run.onStep('forgotten');
    if (!areNamed) left.push(...(await removePermanently(log.store, old, run.signal)));
    run.onStep('removed');
    const requests = run.subjects.map(({ request }) => request);
    for (const reason of left) this.#leave('', requests, reason);
  }

  /** Keys of files that hold rows of the subjects and are not in the table. */
  async #oldFiles({ files, tombstones }: Snapshot): Promise<string[]> {
    const { signal } = this.#place.run;
    const { store, prefix } = this.#log;
    const active = new Set([...files.keys()].map(keyOf));
    const removed = new Map(
      Array.from(tombstones.values(), ({ path, partitionValues }) => [keyOf(path), partitionValues]),
    );
    const old: string[] = [];
    let now: number | null = null;
    for await (const { key, bytes, modifiedAt } of store.list(prefix, signal)) {
      const own = key.slice(prefix.length);
      const isRows = own.endsWith('.parquet') && !own.startsWith('_delta_log/');
      if (!isRows || active.has(own) || this.#clean.has(own)) continue;
      const fixed = { ...partitionIn(own), ...partitionOf(removed.get(own) ?? {}) };
      const judged = await this.#judge(own, bytes, fixed).catch(nullIfMissing);
      if (judged === null || judged.removed.size === 0) {
        this.#clean.add(own);
        continue;
      }
      const isOld = removed.has(own) || (now ??= await timeAt(store, signal)) - modifiedAt >= ABANDONED_AFTER;
      if (isOld) old.push(key);
      else
        this.#leave(
          own,
          [...judged.removed.keys()],
          'another program has written it a moment ago, and not yet used it',
        );
    }
    return old;
  }

  #leave(item: string, requests: readonly string[], reason: string): void {
    this.#place.leave(itemOf(this.#log.prefix + item, this.#place.search), requests, reason);
  }
}

/** Whether the log names a subject, such as in the bounds that other programs write there. */
async function isInLog(log: DeltaLog, search: IdSearch, signal: AbortSignal): Promise<boolean> {
  for await (const { key } of log.store.list(log.key(''), signal)) {
    if (!key.endsWith('.json')) continue;
    const commit = await readWhole(log.store, key, signal).catch(nullIfMissing);
    if (commit !== null && search.finds(commit)) return true;
  }
  return false;
}
