import { rm } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { ManifestChain } from '../archive/manifest-chain.ts';
import { DISK, type Bytes } from '../archive/place.ts';
import { StorePlace } from '../archive/store-place.ts';
import { leftBy, Owners, type ErasableStore, type ErasureRun } from '../core/erasure.ts';
import { MillraceError } from '../core/errors.ts';
import { IdSearch } from '../core/id-search.ts';
import type { OpenProof } from '../core/proof.ts';
import type { SinkLog } from '../core/sink.ts';
import { StorageError, type ObjectStore } from '../core/storage.ts';
import { mapAtMost } from '../lib/map-at-most.ts';
import { deltaTablesIn, isOfTable } from './delta-files.ts';
import { eraseTable } from './delta-tables.ts';
import {
  emptyWork,
  leavesToCompaction,
  temporaryFor,
  type ObjectJob as Job,
  erasingWriter,
} from './object-job.ts';
import {
  isSearched,
  kindOf,
  LineOwners,
  mayNameNobody,
  type EnvelopeFields,
  hasOwnerless,
  NAMED_SO,
  NOBODY,
  OWNERLESS,
} from './file-kinds.ts';
import { NotSearched } from './not-searched.ts';
import { ObjectListing } from './object-listing.ts';
import { eventRewrite, rewriteLines, type Rewrite } from './rewrite-lines.ts';
import { leftOfOther, requestsInOther, searchFile } from './search-file.ts';

/** Times a store is listed again because objects have come and gone. */
const PASSES = 5;
/** Times an object is read again because somebody else has replaced it. */
const TRIES = 10;
/** Times that another erasure is waited for, which has replaced an object and not said so; and milliseconds each time. */
const PATIENT_TRIES = 4;
const PAUSE = 500;
/** Objects whose old versions are asked for at once. */
const AT_ONCE = 16;

export interface ObjectErasureOptions {
  /** For receipts: the URL as the config has it. */
  readonly name: string;
  /** Opens it anew each time. */
  readonly open: () => Promise<ObjectStore>;
  /** A sink of the config writes its archive here: what is taken out is listed, also before anything else is. */
  readonly isArchive: boolean;
  /** Prefixes below it that are none of this store's, each with a `/` at its end. */
  readonly exclude: readonly string[];
  /** Where kept events say whose they are. */
  readonly fields: EnvelopeFields;
  /** The erasure folder: objects are rewritten below it, and the name of its chains lies there. */
  readonly folder: string;
  readonly log: SinkLog;
  readonly proof?: OpenProof;
  /** Asks the sink that writes here to finish the open files for which `holds` answers true. */
  readonly settle?: (holds: (path: string) => Promise<boolean>) => Promise<void>;
}

/**
 * An archive, or tables, in an object store. Each object that holds a subject is written anew beside the machine's own files
 * and replaces the version that was read; when another has taken that version's place meanwhile, it is read again. Then the
 * manifest says it, what the store keeps of earlier versions goes, and the object is searched again.
 */
export class ObjectErasure implements ErasableStore {
  readonly name: string;
  readonly #options: ObjectErasureOptions;

  constructor(options: ObjectErasureOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async erase(run: ErasureRun): Promise<void> {
    const store = await this.#options.open();
    const place = new StorePlace(store.url, () => Promise.resolve(store));
    try {
      await this.#erase(run, store, place);
    } finally {
      await place.close();
      await store.close();
    }
  }

  async #erase(run: ErasureRun, store: ObjectStore, place: StorePlace): Promise<void> {
    const { settle, fields, folder, isArchive } = this.#options;
    if (await leavesToCompaction('start', store, { name: this.name, run })) return;
    const search = new IdSearch(run.subjects);
    await settle?.(async (file) => (await searchFile(DISK, file, search, run.signal)).found);
    const owners = new LineOwners(new Owners(run.subjects), fields);
    const temporary = await emptyWork(folder);
    const listed = await place.list();
    const listing = await ObjectListing.open(place, listed, isArchive, () => this.#chain(store, run.signal));
    const job: Job = { run, store, place, search, owners, listing, temporary, restless: [] };
    const earlier = run.recorded.filter((item) => item.store === this.name);
    for (const item of earlier) {
      // The run may have ended before the line, or before old versions were gone.
      await listing.finish(item);
      await this.#purge(job, item.item);
    }
    await this.#passes(job);
    await this.#purgeAbsent(job);
    // One that began meanwhile may have read what is erased by now, and not put it yet.
    await leavesToCompaction('end', store, { name: this.name, run });
  }

  async #chain(store: ObjectStore, signal: AbortSignal): Promise<ManifestChain> {
    const { folder, log, proof } = this.#options;
    const writer = await erasingWriter(folder);
    const chain = new ManifestChain({ store, writer, log, proof, folder: null, signal });
    await chain.open();
    return chain;
  }

  /**
   * What receivers and compactions have put since the list was made is looked at in a list made anew. The last list is one in which
   * nothing had to be taken out: a compaction may have read an object before it was rewritten, and put its own after the list.
   */
  async #passes(job: Job): Promise<void> {
    const seen = new Map<string, string>();
    for (let pass = 1; ; pass += 1) {
      const [restless] = await this.#pass(job, seen);
      if (restless === undefined && pass > 1) return;
      if (pass < PASSES) continue;
      const reason = 'objects come and go faster than they can be searched';
      if (restless !== undefined)
        job.run.leave(leftBy(this.name, restless, job.run.subjects, new Error(reason)));
      return;
    }
  }

  /**
   * Looks at every object that is new, or has changed.
   * @returns those that went away before they could be looked at, and those that something was taken out of
   */
  async #pass(job: Job, seen: Map<string, string>): Promise<readonly string[]> {
    const { place } = job;
    const { files, aside, parts, claims, temporary, manifest, others } = await place.list();
    const due: string[] = [];
    const all = [files, aside, parts, claims, temporary, manifest, others]
      .flat()
      .filter((file) => !this.#options.exclude.some((prefix) => file.startsWith(prefix)));
    const tables = deltaTablesIn(all);
    const { run, store, search, owners } = job;
    for (const table of tables) {
      if (!seen.has(table)) await eraseTable({ store, name: this.name, prefix: table, run, search, owners });
      seen.set(table, '');
    }
    for (const file of all) {
      const version = (await place.stat(file))?.version ?? '';
      if (seen.get(file) === version || isOfTable(file, tables)) continue;
      seen.set(file, version);
      due.push(file);
    }
    const restless: string[] = [];
    place.expect(due);
    run.expected?.(due.filter(isSearched).length);
    for (const file of due) await this.#eraseObject({ ...job, restless }, file);
    // What the next list shows again did not go away.
    for (const file of restless) seen.delete(file);
    return restless;
  }

  async #eraseObject(job: Job, file: string): Promise<void> {
    const { run, search } = job;
    run.signal.throwIfAborted();
    try {
      const kind = kindOf(file);
      if (kind === 'unreadable') throw new NotSearched('this kind of file');
      if (kind === 'lines' || kind === 'blob') await this.#lines(job, file, kind);
      else await this.#other(job, file);
      if (search.finds(Buffer.from(file)) && (await job.store.head(file, run.signal)) !== null)
        this.#leave(job, file, NOBODY, NAMED_SO);
    } catch (error) {
      // That the store cannot be asked concerns all of it.
      if (run.signal.aborted || error instanceof MillraceError) throw error;
      if (error instanceof StorageError && error.fault === 'missing') job.restless.push(file);
      else if (error instanceof NotSearched) this.#leave(job, file, NOBODY, error.message);
      else run.leave(leftBy(this.name, search.redact(file), run.subjects, error));
    } finally {
      await rm(temporaryFor(job, file), { force: true });
    }
  }

  async #lines(job: Job, file: string, kind: 'lines' | 'blob'): Promise<void> {
    const { run, place, search } = job;
    const { found, bytes } = await searchFile(place, file, search, run.signal);
    run.searched(bytes);
    if (mayNameNobody(file) && (await hasOwnerless(place, file))) this.#leave(job, file, NOBODY, OWNERLESS);
    if (!found) return;
    run.onStep('found');
    for (let tries = 1; tries <= TRIES; tries += 1)
      if ((await this.#replace(job, file, kind, tries)) === 'done') return;
    throw new Error('others replace it faster than it can be rewritten; run the erasure again');
  }

  /** Rewrites one version of an object, or removes it. */
  async #replace(job: Job, file: string, kind: 'lines' | 'blob', tries: number): Promise<'done' | 'changed'> {
    const { run, store, listing } = job;
    const present = await store.head(file, run.signal);
    if (present === null) throw new StorageError('missing', file);
    const { version } = present;
    const pinned: Bytes = { chunks: (name) => store.get(name, { version, signal: run.signal }) };
    const rewrite = await this.#rewritten(job, pinned, file, kind).catch((error: unknown) => {
      if (error instanceof StorageError && error.fault === 'changed') return 'changed' as const;
      throw error;
    });
    if (rewrite === 'changed') return 'changed';
    if (rewrite === null) return 'done';
    // Another erasure is between its object and its line, or was killed there: it gets a moment.
    if (tries < PATIENT_TRIES && !(await listing.agrees(file, rewrite.before))) {
      await wait(PAUSE, undefined, { signal: run.signal });
      return 'changed';
    }
    run.onStep('written');
    const { removed, before, after, entries, events } = rewrite;
    await run.forget?.(events ?? []);
    const item = { store: this.name, item: file, sha256_before: before, sha256_after: after?.sha256 ?? null };
    await run.record({ ...item, removed, ...(entries === undefined ? {} : { entries }) });
    run.onStep('recorded');
    const at = new Date();
    const body =
      after === null ? null : { file: temporaryFor(job, file), size: after.bytes, sha256: after.sha256 };
    const done =
      body === null
        ? await store.delete(file, version, run.signal)
        : (await store.putIfMatch(file, version, body, run.signal)).status;
    if (done === 'changed') {
      // It was not this that was removed.
      await run.record({ ...item, removed: {} });
      return 'changed';
    }
    job.restless.push(file);
    run.onStep('replaced');
    await listing.add(file, { ...rewrite, at });
    run.onStep('listed');
    await this.#purge(job, file);
    run.onStep('purged');
    if (after !== null) await this.#prove(job, file, kind);
    return 'done';
  }

  async #rewritten(job: Job, pinned: Bytes, file: string, kind: 'lines' | 'blob'): Promise<Rewrite | null> {
    const { run, owners, search } = job;
    if (kind === 'lines') {
      const written = { place: pinned, file, temporary: temporaryFor(job, file) };
      return rewriteLines(written, owners, search, run.signal);
    }
    return eventRewrite(pinned, file, owners);
  }

  /** What lies there now is what was written, and nothing of the subjects is in it. */
  async #prove(job: Job, file: string, kind: 'lines' | 'blob'): Promise<void> {
    const { run, place, owners, search } = job;
    if (!(await searchFile(place, file, search, run.signal)).found) return;
    const written = { place, file, temporary: temporaryFor(job, file) };
    const left = kind === 'lines' ? await rewriteLines(written, owners, search, run.signal) : null;
    if (left !== null)
      this.#leave(job, file, Object.keys(left.removed), 'records of the user are in it again');
  }

  async #purge(job: Job, file: string): Promise<void> {
    const { kept } = await job.store.purge(file, job.run.signal);
    for (const what of kept)
      this.#leave(
        job,
        `${file} (${what})`,
        NOBODY,
        'the store still keeps it; it goes with the store’s own rule',
      );
  }

  /** Objects that were removed before now may be kept as old versions. */
  async #purgeAbsent(job: Job): Promise<void> {
    const { place, listing, run } = job;
    await mapAtMost(AT_ONCE, [...listing.files], async (file) => {
      run.signal.throwIfAborted();
      if ((await place.stat(file)) === null) await this.#purge(job, file);
    });
  }

  async #other(job: Job, file: string): Promise<void> {
    const { run, place } = job;
    const { requests, bytes } = await requestsInOther(place, file, run.subjects);
    run.searched(bytes);
    if (requests.length === 0) return;
    const left = leftOfOther(file, requests);
    this.#leave(job, file, left.requests, left.reason);
  }

  #leave({ run, search }: Job, item: string, requests: readonly string[], reason: string): void {
    run.leave({ store: this.name, item: search.redact(item), requests, reason });
  }
}
