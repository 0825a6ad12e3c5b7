import { rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileLines } from '../archive/file-lines.ts';
import { DISK } from '../archive/place.ts';
import { OPEN_FOLDER } from '../core/archive.ts';
import { leftBy, Owners } from '../core/erasure.ts';
import { errorCode, syncFolder } from '../lib/durable.ts';
import { removeEmpty } from './delta-partition.ts';
import {
  kindOf,
  mayNameNobody,
  type FileKind,
  hasOwnerless,
  NAMED_SO,
  NOBODY,
  OWNERLESS,
} from './file-kinds.ts';
import {
  exists,
  isAbandoned,
  isBeingWritten,
  isLeftByBackfill,
  type FolderJob as Job,
} from './folder-job.ts';
import { NotSearched } from './not-searched.ts';
import { rewritePlan } from './plan-file.ts';
import { commitRewrite, eventRewrite, rewriteLines, type Rewrite, temporaryPath } from './rewrite-lines.ts';
import { leftOfOther, mayHold, requestsInOther, searchFile } from './search-file.ts';

/** Takes subjects out of the files of a folder, each as its kind asks for. */
export class FolderFiles {
  readonly #store: string;

  /** @param store for receipts: the folder as the config has it */
  constructor(store: string) {
    this.#store = store;
  }

  /** Searches a file, and rewrites or removes it when it holds a subject. */
  async erase(job: Job, file: string): Promise<void> {
    const { run, root, search, prefix } = job;
    run.signal.throwIfAborted();
    try {
      await this.#byKind[kindOf(file)](job, file);
      if (search.finds(Buffer.from(file)) && (await exists(join(root, file))))
        this.leave(job, prefix + file, NOBODY, NAMED_SO);
    } catch (error) {
      if (run.signal.aborted) throw error;
      if (errorCode(error) === 'ENOENT' && !(await exists(join(root, file)))) {
        job.vanished.push(file);
        return;
      }
      // No error of the system is left whole: its message has the path.
      if (error instanceof NotSearched) this.leave(job, prefix + file, NOBODY, error.message);
      else run.leave(leftBy(this.#store, search.redact(prefix + file), run.subjects, error));
    }
  }

  /** @param requests those that have to wait for it; none when it can only be named on the receipt */
  leave(
    { run, search }: Pick<Job, 'run' | 'search'>,
    item: string,
    requests: readonly string[],
    reason: string,
  ): void {
    run.leave({ store: this.#store, item: search.redact(item), requests, reason });
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
      this.leave(job, prefix + file, NOBODY, OWNERLESS);
    if (!found) return;
    if (await isBeingWritten(job, file)) return this.lookAt(job, file);
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
    const rewrite = await eventRewrite(DISK, path, owners);
    if (rewrite === null) return;
    run.onStep('found');
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
    const { requests, bytes } = await requestsInOther(DISK, join(root, file), run.subjects);
    run.searched(bytes);
    if (requests.length === 0) return;
    if (await isLeftByBackfill(job, file)) {
      await unlink(join(root, file));
      return syncFolder(dirname(join(root, file)));
    }
    const left = leftOfOther(file, requests);
    this.leave(job, prefix + file, left.requests, left.reason);
  }

  /** What another process is writing can only be looked at. */
  async lookAt(job: Job, file: string): Promise<void> {
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
      this.leave(
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
    { run, root, search, listing, prefix }: Job,
    file: string,
    rewrite: Rewrite,
    commit: () => Promise<void>,
  ): Promise<void> {
    run.onStep('written');
    const { removed, before, after, entries, events } = rewrite;
    await run.forget?.(events ?? []);
    const hashes = { sha256_before: before, sha256_after: after?.sha256 ?? null };
    const more = entries === undefined ? {} : { entries };
    await run.record({ store: this.#store, item: prefix + file, removed, ...hashes, ...more });
    run.onStep('recorded');
    await commit();
    if (after === null && search.redact(file) !== file) await removeEmpty(root, search);
    run.onStep('replaced');
    await listing.add(file, { ...rewrite, at: new Date() });
    run.onStep('listed');
  }
}
