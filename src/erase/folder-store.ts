import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { DISK } from '../archive/place.ts';
import { SENT_EXTENSION } from '../core/archive.ts';
import { leftBy, Owners, type ErasableStore, type ErasureRun } from '../core/erasure.ts';
import { IdSearch } from '../core/id-search.ts';
import type { OpenProof } from '../core/proof.ts';
import type { SinkLog } from '../core/sink.ts';
import { errorCode } from '../lib/durable.ts';
import { FolderRefused } from '../lib/folder-refused.ts';
import { WorkFolder } from '../lib/work-folder.ts';
import { removeEmpty } from './delta-partition.ts';
import { deltaTablesIn, isOfTable } from './delta-files.ts';
import { eraseTable } from './delta-tables.ts';
import { isSearched, LineOwners, NOBODY, type EnvelopeFields } from './file-kinds.ts';
import { FolderFiles } from './folder-files.ts';
import { Listing } from './listing.ts';
import { searchFile } from './search-file.ts';
import type { FolderJob as Job } from './folder-job.ts';
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
  /** Why what was written here is missed; null when it is there. Absent where nothing need have been written yet. */
  readonly missing?: (() => Error | null) | undefined;
  /** Asks the sink that is writing here to finish the open files for which `holds` answers true. */
  readonly settle?: (holds: (path: string) => Promise<boolean>) => Promise<void>;
}

/** A folder of files that hold data of users: an archive, tables, the output of a backfill, or anything else. */
export class FolderStore implements ErasableStore {
  readonly name: string;
  readonly #options: FolderStoreOptions;
  readonly #files: FolderFiles;

  constructor(options: FolderStoreOptions) {
    this.name = options.name;
    this.#files = new FolderFiles(options.name);
    this.#options = options;
  }

  /** Searches every file, and rewrites or removes those that hold a subject; the others are not touched. */
  async erase(run: ErasureRun): Promise<void> {
    const missing = this.#options.missing?.() ?? null;
    if (missing !== null) run.leave(leftBy(this.name, '', run.subjects, missing));
    let root: string;
    try {
      root = await realpath(this.#options.path);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return;
      throw error;
    }
    const own = await this.#take(root, run);
    if (own === 'in use') return;
    try {
      await this.#erase(root, run, own !== null);
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

  async #erase(root: string, run: ErasureRun, held: boolean): Promise<void> {
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
      await this.#pass({ root, run, search, owners, vanished, held }, apart, seen);
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
        // A writer reads what it has sent on when it starts again, and does no more to it than remove it.
        if (writers.isOthers(file) && !file.endsWith(SENT_EXTENSION)) await this.#files.lookAt(job, file);
        else await this.#files.erase(job, file);
      }
    } finally {
      writers.release();
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
    this.#files.leave(about, link, NOBODY, reason);
  }
}
