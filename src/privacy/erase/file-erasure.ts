import { rm } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { fileLines } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';
import type { FileOwner } from '../../archive/write-file.ts';
import { type ErasedItem, type ErasureRun, leftBy, Owners } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import type { IdSearch } from '../../core/id-search.ts';
import { StorageError } from '../../core/storage.ts';
import {
  type FileKind,
  hasOwnerless,
  kindOf,
  type LineOwners,
  mayNameNobody,
  NAMED_SO,
  NOBODY,
  OWNERLESS,
} from './file-kinds.ts';
import { isGone, type Listing } from './listing.ts';
import { NotSearched } from './not-searched.ts';
import { rewritePlan } from './plan-file.ts';
import { eventRewrite, rewriteLines, type Rewrite } from './rewrite-lines.ts';
import { leftOfOther, mayHold, requestsInOther, searchFile } from './search-file.ts';

/** Times a file is read again because somebody else has replaced it. */
const TRIES = 10;
/** Times that another erasure is waited for, which has replaced a file and not said so; and milliseconds each time. */
const PATIENT_TRIES = 4;
const PAUSE = 500;

/** What an erasure of one place works with. */
export interface Erasing {
  /** For receipts: the place as the config has it. */
  readonly name: string;
  readonly run: ErasureRun;
  readonly search: IdSearch;
  readonly owners: LineOwners;
}

/** The files of one archive, or of a place that is none, in a folder or in an object store. Named relative to it. */
export interface ErasableFiles {
  /** Where they lie in the place, with a `/` at its end; empty for the place itself. */
  readonly prefix: string;
  readonly bytes: Bytes;
  readonly listing: Listing;
  /** Another after each change. @throws what `isGone` tells */
  versionOf(file: string): Promise<string>;
  /** Reads this version only. @throws StorageError changed */
  pinned(version: string): Bytes;
  /** Path of what is written anew, until it is put in place. */
  temporaryFor(file: string): string;
  /**
   * Puts what was written anew in the place of a version, or removes it; durable once it resolves.
   * @returns false when the file is another by now: nothing was done
   */
  replace(file: string, version: string, after: Rewrite['after']): Promise<boolean>;
  /** Removes what is kept of a file beside its present state. @returns what is kept all the same */
  purge(file: string): Promise<readonly string[]>;
  /** Null in a store: an object is there whole, and of nobody. */
  readonly local: LocalFiles | null;
}

/** Files of which a writer on this machine may hold some. */
interface LocalFiles {
  /** Whoever could read the file still can. */
  ownerOf(file: string): Promise<FileOwner>;
  /** Whether a process that lives is writing it. */
  isBeingWritten(file: string): Promise<boolean>;
  /** Removes a file whose writer is gone and that nobody will miss. @returns false for any other, which stays */
  discard(file: string): Promise<boolean>;
}

type Rewritten = 'lines' | 'blob' | 'plan';

/**
 * Takes subjects out of files, each as its kind asks for. A file that holds one is written anew and replaces the version that
 * was read; when another has taken that version's place meanwhile, it is read again. Then the manifest says it, what is kept
 * of earlier versions goes, and the file is searched again.
 */
export class FileErasure {
  /** Files that went away before they could be looked at. */
  readonly vanished: string[] = [];
  /** Those that something was taken out of. */
  readonly replaced: string[] = [];
  readonly #erasing: Erasing;
  readonly #files: ErasableFiles;

  constructor(erasing: Erasing, files: ErasableFiles) {
    this.#erasing = erasing;
    this.#files = files;
  }

  /** Goes on where an earlier run was ended: before it could list a change, or before old versions were gone. */
  async finish(earlier: readonly ErasedItem[]): Promise<void> {
    const { listing, bytes, prefix } = this.#files;
    for (const item of earlier) {
      const file = item.item.slice(prefix.length);
      await listing.finish(bytes, file, item);
      await this.purge(file);
    }
  }

  /** Searches a file, and rewrites or removes it when it holds a subject. */
  erase(file: string): Promise<void> {
    return this.#attempt(file, async () => {
      const { search } = this.#erasing;
      await this.#byKind[this.#kindOf(file)](file);
      if (search.finds(Buffer.from(file)) && (await this.#isThere(file))) this.#leave(file, NOBODY, NAMED_SO);
    });
  }

  /** What another process is writing can only be looked at. */
  lookAt(file: string): Promise<void> {
    return this.#attempt(file, () => this.#lookAt(file));
  }

  async purge(file: string): Promise<void> {
    const reason = 'the store still keeps it; it goes with the store’s own rule';
    for (const what of await this.#files.purge(file)) this.#leave(`${file} (${what})`, NOBODY, reason);
  }

  async #attempt(file: string, work: () => Promise<void>): Promise<void> {
    const { name, run, search } = this.#erasing;
    run.signal.throwIfAborted();
    try {
      await work();
    } catch (error) {
      // That the place cannot be asked concerns all of it.
      if (run.signal.aborted || error instanceof MillraceError) throw error;
      if (isGone(error)) this.vanished.push(file);
      else if (error instanceof NotSearched) this.#leave(file, NOBODY, error.message);
      else run.leave(leftBy(name, search.redact(this.#files.prefix + file), run.subjects, error));
    }
  }

  readonly #byKind: Readonly<Record<FileKind, (file: string) => Promise<void>>> = {
    lines: (file) => this.#records(file, 'lines'),
    blob: (file) => this.#records(file, 'blob'),
    plan: (file) => this.#rewrite(file, 'plan'),
    other: (file) => this.#other(file),
    lock: () => Promise.resolve(),
    temporary: async (file) => void (await this.#files.local?.discard(file)),
    unreadable: () => Promise.reject(new NotSearched('this kind of file')),
  };

  /** What a folder has of writers and commands that were ended is no more than an object in a store. */
  #kindOf(file: string): FileKind {
    const kind = kindOf(file);
    const isLocal = kind === 'plan' || kind === 'lock' || kind === 'temporary';
    return isLocal && this.#files.local === null ? 'other' : kind;
  }

  async #isThere(file: string): Promise<boolean> {
    return this.#files.versionOf(file).then(
      () => true,
      (error: unknown) => {
        if (isGone(error)) return false;
        throw error;
      },
    );
  }

  async #records(file: string, kind: Rewritten): Promise<void> {
    const { run, search } = this.#erasing;
    const { bytes: place } = this.#files;
    const { found, bytes } = await searchFile(place, file, search, run.signal);
    run.searched(bytes);
    if (mayNameNobody(file) && (await hasOwnerless(place, file))) this.#leave(file, NOBODY, OWNERLESS);
    if (!found) return;
    if ((await this.#files.local?.isBeingWritten(file)) === true) return this.#lookAt(file);
    run.onStep('found');
    await this.#rewrite(file, kind);
  }

  async #rewrite(file: string, kind: Rewritten): Promise<void> {
    try {
      for (let tries = 1; tries <= TRIES; tries += 1)
        if (await this.#replace(file, kind, tries < PATIENT_TRIES)) return;
    } finally {
      await rm(this.#files.temporaryFor(file), { force: true });
    }
    throw new Error('others replace it faster than it can be rewritten; run the erasure again');
  }

  /** Rewrites one version of a file, or removes it. @returns false when it is another by now */
  async #replace(file: string, kind: Rewritten, isPatient: boolean): Promise<boolean> {
    const { name, run } = this.#erasing;
    const { listing, prefix } = this.#files;
    const version = await this.#files.versionOf(file);
    const rewrite = await this.#rewritten(this.#files.pinned(version), file, kind).catch((error: unknown) => {
      if (error instanceof StorageError && error.fault === 'changed') return 'changed' as const;
      throw error;
    });
    if (rewrite === 'changed') return false;
    if (rewrite === null) return true;
    // Another erasure is between its file and its line, or was killed there: it gets a moment.
    if (isPatient && !(await listing.agrees(file, rewrite.before))) {
      await wait(PAUSE, undefined, { signal: run.signal });
      return false;
    }
    run.onStep('written');
    const { removed, before, after, entries, events } = rewrite;
    await run.forget?.(events ?? []);
    const hashes = { sha256_before: before, sha256_after: after?.sha256 ?? null };
    const item = { store: name, item: prefix + file, ...hashes };
    await run.record({ ...item, removed, ...(entries === undefined ? {} : { entries }) });
    run.onStep('recorded');
    const at = new Date();
    if (!(await this.#files.replace(file, version, after))) {
      // It was not this that was removed.
      await run.record({ ...item, removed: {} });
      return false;
    }
    this.replaced.push(file);
    run.onStep('replaced');
    await listing.add(file, { ...rewrite, at });
    run.onStep('listed');
    await this.purge(file);
    run.onStep('purged');
    if (after !== null && kind === 'lines') await this.#prove(file);
    return true;
  }

  async #rewritten(place: Bytes, file: string, kind: Rewritten): Promise<Rewrite | null> {
    const { run, owners, search } = this.#erasing;
    if (kind === 'blob') return eventRewrite(place, file, owners);
    const temporary = this.#files.temporaryFor(file);
    if (kind === 'plan') return rewritePlan(place, file, temporary, new Owners(run.subjects));
    const like = await this.#files.local?.ownerOf(file);
    return rewriteLines({ place, file, temporary, like }, owners, search, run.signal);
  }

  /** What lies there now is what was written, and nothing of the subjects is in it. */
  async #prove(file: string): Promise<void> {
    const { run, search } = this.#erasing;
    const { bytes } = this.#files;
    if (!(await searchFile(bytes, file, search, run.signal)).found) return;
    const left = await this.#rewritten(bytes, file, 'lines');
    if (left !== null) this.#leave(file, Object.keys(left.removed), 'records of the user are in it again');
  }

  async #other(file: string): Promise<void> {
    const { run } = this.#erasing;
    const { requests, bytes } = await requestsInOther(this.#files.bytes, file, run.subjects);
    run.searched(bytes);
    if (requests.length === 0 || (await this.#files.local?.discard(file)) === true) return;
    const left = leftOfOther(file, requests);
    this.#leave(file, left.requests, left.reason);
  }

  async #lookAt(file: string): Promise<void> {
    if (kindOf(file) !== 'lines') return;
    const { search, owners } = this.#erasing;
    const requests = new Set<string>();
    for await (const lines of fileLines(this.#files.bytes, file))
      for (const { bytes } of lines)
        if (bytes !== null && mayHold(bytes, search))
          for (const request of owners.ofLine(bytes)) requests.add(request);
    if (requests.size === 0) return;
    this.#leave(file, [...requests], 'another process is writing to it, or did so a moment ago');
  }

  /** @param requests those that have to wait for it; none when it can only be named on the receipt */
  #leave(file: string, requests: readonly string[], reason: string): void {
    const { name, run, search } = this.#erasing;
    run.leave({ store: name, item: search.redact(this.#files.prefix + file), requests, reason });
  }
}
