import { realpath, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileLines, wholeEvent } from '../archive/file-lines.ts';
import { DISK } from '../archive/place.ts';
import { OPEN_FOLDER } from '../core/archive.ts';
import { leftBy, Owners, type ErasableStore, type ErasureRun } from '../core/erasure.ts';
import { IdSearch } from '../core/id-search.ts';
import type { OpenProof } from '../core/proof.ts';
import type { SinkLog } from '../core/sink.ts';
import { errorCode, syncFolder } from '../lib/durable.ts';
import { FolderRefused } from '../lib/folder-refused.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import { hashFile } from '../archive/facts.ts';
import { removeEmpty } from './delta-folders.ts';
import { deltaTablesIn, isOfTable } from './delta-files.ts';
import { eraseTable } from './delta-tables.ts';
import {
  isSearched,
  kindOf,
  LineOwners,
  mayNameNobody,
  type EnvelopeFields,
  type FileKind,
} from './file-kinds.ts';
import { Listing } from './listing.ts';
import { NotSearched } from './not-searched.ts';
import { hasOwnerless, NOBODY, OWNERLESS } from './ownerless.ts';
import { rewritePlan } from './plan-file.ts';
import { commitRewrite, rewriteLines, type Rewrite } from './rewrite-lines.ts';
import { mayHold, requestsInFile, searchFile } from './search-file.ts';
import { exists, isAbandoned, isBeingWritten, type FolderJob as Job } from './folder-job.ts';
import { temporaryPath } from './temporary.ts';
import { walkFolder } from './walk.ts';
import { holdWriters } from './writers.ts';

/** Times a folder is listed again because files have gone. */
const PASSES = 5;

export interface FolderStoreOptions {
  /** For receipts: the folder as the config has it. */
  readonly name: string;
  readonly path: string;
  /** Folders below it that are none of this store's, absolute. */
  readonly exclude: readonly string[];
  /** Where kept events say whose they are. */
  readonly fields: EnvelopeFields;
  readonly log: SinkLog;
  /** Signs what the manifests of archives say of it. */
  readonly proof?: OpenProof;
  /** Asks the sink that is writing here to finish the open files for which `holds` answers true. */
  readonly settle?: (holds: (path: string) => Promise<boolean>) => Promise<void>;
}

/** A folder of files that hold data of users: an archive, tables, the output of a backfill, or anything else. */
export class FolderStore implements ErasableStore {
  readonly name: string;
  readonly #options: FolderStoreOptions;

  constructor(options: FolderStoreOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Searches every file, and rewrites or removes those that hold a subject; the others are not touched. */
  async erase(run: ErasureRun): Promise<void> {
    let root: string;
    try {
      root = await realpath(this.#options.path);
    } catch (error) {
      // Nothing has been written here yet.
      if (errorCode(error) === 'ENOENT') return;
      throw error;
    }
    const own = await this.#take(root, run);
    if (own === 'in use') return;
    try {
      await this.#erase(root, run);
    } finally {
      own?.release();
    }
  }

  /** A command that writes here, such as a backfill, would restore what is taken out: the next run tries again. */
  async #take(root: string, run: ErasureRun): Promise<WorkFolder | 'in use' | null> {
    try {
      return await WorkFolder.take(root);
    } catch (error) {
      // What cannot be written is searched all the same.
      if (!(error instanceof FolderRefused)) return null;
      run.leave(leftBy(this.name, '', run.subjects, error));
      return 'in use';
    }
  }

  async #erase(root: string, run: ErasureRun): Promise<void> {
    const { settle, fields, exclude } = this.#options;
    const search = new IdSearch(run.subjects);
    await settle?.(async (file) => (await searchFile(DISK, file, search, run.signal)).found);
    const owners = new LineOwners(new Owners(run.subjects), fields);
    // An archive further down has a manifest and writers of its own.
    const apart = await Promise.all(exclude.map((other) => realpath(other).catch(() => other)));
    const seen = new Set<string>();
    // What a writer has finished between the list and the look has another name by then.
    for (let pass = 1; ; pass += 1) {
      const vanished: string[] = [];
      await this.#pass({ root, run, search, owners, vanished }, apart, seen);
      if (vanished.length === 0) return;
      if (pass < PASSES) continue;
      const reason = 'files come and go faster than they can be searched';
      run.leave(leftBy(this.name, vanished[0] ?? '', run.subjects, new Error(reason)));
      return;
    }
  }

  /** Looks at every file that was not there in an earlier pass. */
  async #pass(
    about: Omit<Job, 'prefix' | 'listing' | 'alone'>,
    apart: readonly string[],
    seen: Set<string>,
  ): Promise<void> {
    const { root } = about;
    const walked = await walkFolder(root, apart);
    const tables = deltaTablesIn(walked.files);
    const files = walked.files.filter((file) => !seen.has(file) && !isOfTable(file, tables));
    const links = walked.links.filter((link) => !seen.has(link));
    for (const path of [...files, ...links]) seen.add(path);
    about.run.expected?.(files.filter(isSearched).length);
    for (const link of links) await this.#link(about, link, [root, ...apart]);
    for (const table of tables) if (!seen.has(table)) await this.#table(about, table);
    for (const table of tables) seen.add(table);
    const { archives } = walked;
    for (const archive of ['', ...archives.filter((folder) => folder !== '')]) {
      const inside = archives.filter((folder) => folder.length > archive.length);
      const prefix = archive === '' ? '' : `${archive}/`;
      const own = files.filter(
        (file) => file.startsWith(prefix) && !inside.some((folder) => file.startsWith(`${folder}/`)),
      );
      await this.#eraseArchive({ ...about, root: join(root, archive), prefix }, own);
    }
  }

  async #eraseArchive(about: Omit<Job, 'listing' | 'alone'>, files: readonly string[]): Promise<void> {
    const { root, prefix, run } = about;
    const writers = await holdWriters(root);
    try {
      const listing = new Listing(root, this.#options.log, this.#options.proof);
      const job: Job = { ...about, listing, alone: writers.none };
      await listing.finishInterrupted({ store: this.name, prefix }, run);
      for (const path of files) {
        const file = path.slice(prefix.length);
        if (writers.isOthers(file)) await this.#lookAtOthers(job, file);
        else await this.#eraseFile(job, file);
      }
    } finally {
      writers.release();
    }
  }

  async #eraseFile(job: Job, file: string): Promise<void> {
    const { run, root, search, prefix } = job;
    run.signal.throwIfAborted();
    try {
      await this.#byKind[kindOf(file)](job, file);
      const named = search.requestsIn(Buffer.from(file));
      if (named.length > 0 && (await exists(join(root, file))))
        this.#leave(job, prefix + file, named, 'its name holds the id; rename or remove it');
    } catch (error) {
      if (run.signal.aborted) throw error;
      if (errorCode(error) === 'ENOENT' && !(await exists(join(root, file)))) {
        job.vanished.push(file);
        return;
      }
      // No error of the system is left whole: its message has the path.
      if (error instanceof NotSearched) this.#leave(job, prefix + file, NOBODY, error.message);
      else run.leave(leftBy(this.name, search.redact(prefix + file), run.subjects, error));
    }
  }

  /** @param table its folder below the root, with a `/` at its end; empty for the root itself */
  async #table(
    { root, run, search, owners }: Pick<Job, 'root' | 'run' | 'search' | 'owners'>,
    table: string,
  ): Promise<void> {
    const { openStore } = await import('../storage/open.ts');
    const store = await openStore(root);
    try {
      await eraseTable({ store, name: this.name, prefix: table, run, search, owners });
      await removeEmpty(join(root, table), search);
    } finally {
      await store.close();
    }
  }

  /** What lies behind a link is somebody else's; unless it is searched at its own place, it is not searched. */
  async #link(
    about: Pick<Job, 'run' | 'root' | 'search'>,
    link: string,
    covered: readonly string[],
  ): Promise<void> {
    const target = await realpath(join(about.root, link)).catch(() => null);
    if (target === null || covered.some((folder) => target === folder || target.startsWith(`${folder}/`)))
      return;
    const reason = 'a symbolic link is not followed; name its target in erasure.folders';
    this.#leave(about, link, about.search.requestsIn(Buffer.from(link)), reason);
  }

  /** @param requests those that have to wait for it; none when it can only be named on the receipt */
  #leave(
    { run, search }: Pick<Job, 'run' | 'search'>,
    item: string,
    requests: readonly string[],
    reason: string,
  ): void {
    run.leave({ store: this.name, item: search.redact(item), requests, reason });
  }

  readonly #byKind: Readonly<Record<FileKind, (job: Job, file: string) => Promise<void>>> = {
    lines: (job, file) => this.#lines(job, file),
    blob: (job, file) => this.#blob(job, file),
    plan: (job, file) => this.#plan(job, file),
    other: (job, file) => this.#other(job, file),
    lock: () => Promise.resolve(),
    temporary: (job, file) => this.#temporary(job, file),
    unreadable: () => Promise.reject(new NotSearched('this kind of file')),
  };

  async #lines(job: Job, file: string): Promise<void> {
    const { run, root, prefix, search, owners } = job;
    const path = join(root, file);
    const { found, bytes } = await searchFile(DISK, path, search, run.signal);
    run.searched(bytes);
    if (mayNameNobody(file) && (await hasOwnerless(DISK, path)))
      this.#leave(job, prefix + file, NOBODY, OWNERLESS);
    if (!found) return;
    if (await isBeingWritten(path)) return this.#lookAtOthers(job, file);
    run.onStep('found');
    const written = { place: DISK, file: path, temporary: temporaryPath(path), like: await stat(path) };
    const rewrite = await rewriteLines(written, owners, search, run.signal);
    if (rewrite !== null) await this.#replace(job, file, rewrite, () => commitRewrite(path, rewrite));
  }

  /** A kept event is one user's: it goes whole, and its folder with it once that is empty. */
  async #blob(job: Job, file: string): Promise<void> {
    const { run, root, search, owners } = job;
    const path = join(root, file);
    const { found, bytes } = await searchFile(DISK, path, search, run.signal);
    run.searched(bytes);
    if (!found) return;
    const requests = owners.ofEvent(await wholeEvent(DISK, path));
    if (requests.length === 0) return;
    const before = await hashFile(DISK, path);
    run.onStep('found');
    const removed = Object.fromEntries(requests.map((request) => [request, 1]));
    const rewrite = { removed, lines: 1, before: before.sha256, after: null };
    await this.#replace(job, file, rewrite, async () => {
      await unlink(path);
      await syncFolder(dirname(path));
      await rmdir(dirname(path)).catch(() => undefined);
    });
  }

  /** Compressed and cut short, it cannot be searched; and nobody will miss it. */
  async #temporary({ root, alone }: Job, file: string): Promise<void> {
    const path = join(root, file);
    // A compaction has its own there, and does not run: it holds the lock that is held now.
    const isCompactions = dirname(file) === OPEN_FOLDER;
    if (alone || isCompactions || (await isAbandoned(path))) await unlink(path);
  }

  async #plan(job: Job, file: string): Promise<void> {
    const path = join(job.root, file);
    const rewrite = await rewritePlan(path, new Owners(job.run.subjects));
    if (rewrite !== null) await this.#replace(job, file, rewrite, () => commitRewrite(path, rewrite));
  }

  async #other(job: Job, file: string): Promise<void> {
    const { run, root, prefix } = job;
    const search = new IdSearch(run.subjects, 'anywhere');
    const { requests, bytes } = await requestsInFile(DISK, join(root, file), search);
    run.searched(bytes);
    if (requests.length === 0) return;
    this.#leave(job, prefix + file, requests, 'this kind of file cannot be rewritten');
  }

  /** What another process is writing can only be looked at. */
  async #lookAtOthers(job: Job, file: string): Promise<void> {
    if (kindOf(file) !== 'lines') return;
    const { root, prefix, search, owners, vanished } = job;
    try {
      const requests = new Set<string>();
      for await (const lines of fileLines(DISK, join(root, file))) {
        for (const { bytes } of lines)
          if (bytes !== null && mayHold(bytes, search))
            for (const request of owners.ofLine(bytes)) requests.add(request);
      }
      if (requests.size === 0) return;
      this.#leave(
        job,
        prefix + file,
        [...requests],
        'another process is writing to it, or did so a moment ago',
      );
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error;
      vanished.push(file);
    }
  }

  async #replace(
    { run, listing, prefix }: Job,
    file: string,
    rewrite: Rewrite,
    commit: () => Promise<void>,
  ): Promise<void> {
    run.onStep('written');
    const { removed, before, after, entries } = rewrite;
    const hashes = { sha256_before: before, sha256_after: after?.sha256 ?? null };
    const more = entries === undefined ? {} : { entries };
    await run.record({ store: this.name, item: prefix + file, removed, ...hashes, ...more });
    run.onStep('recorded');
    await commit();
    run.onStep('replaced');
    await listing.add(file, { ...rewrite, at: new Date() });
    run.onStep('listed');
  }
}
