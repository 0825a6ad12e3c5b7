import { rm } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { fileLines } from '../../archive/file-lines.ts';
import type { Bytes } from '../../archive/place.ts';
import type { FileOwner } from '../../archive/write-file.ts';
import { type ErasedItem, Owners } from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import { StorageError } from '../../core/storage.ts';
import { type FileKind, hasOwnerlessRow, kindOf, mayHaveOwnerlessRows } from './file-kinds.ts';
import { isGone, type Listing } from './listing.ts';
import { NotSearched } from './not-searched.ts';
import type { PlaceRun } from './place-run.ts';
import { rewritePlan } from './plan-file.ts';
import { eventRewrite, rewriteLines, type Rewrite } from './rewrite-lines.ts';
import { leftOfOther, mayHold, requestsInOther, searchFile } from './search-file.ts';

/** Times a file is read again because another process has replaced it. */
const TRIES = 10;
/** Tries that wait for another erasure, which has replaced a file and not listed it yet; and milliseconds of each wait. */
const PATIENT_TRIES = 4;
const PAUSE = 500;

/** The files of one archive, or of a place that is not an archive. Their names are relative to it. */
export interface ErasableFiles {
  /** The archive's folder in the place, with a `/` at its end; empty for the place itself. */
  readonly prefix: string;
  readonly bytes: Bytes;
  readonly listing: Listing;
  kindOf(file: string): FileKind;
  /** Changes with each change of the file. @throws an error that `isGone` recognises */
  versionOf(file: string): Promise<string>;
  /** Reads this version only. @throws StorageError changed */
  pinned(version: string): Bytes;
  /** Path of the rewritten file until it is put in place. */
  temporaryFor(file: string): string;
  /**
   * Replaces a version with the rewritten file, or removes it; durable once it resolves.
   * @returns false when the file has another version by now: nothing was done
   */
  replace(file: string, version: string, after: Rewrite['after']): Promise<boolean>;
  /** Removes earlier versions that are kept of a file. @returns the ones that stay */
  purge(file: string): Promise<readonly string[]>;
  /** Owner and mode that the rewritten file gets; undefined in an object store. */
  ownerOf(file: string): Promise<FileOwner | undefined>;
  /** Whether a living process is writing it. */
  isBeingWritten(file: string): Promise<boolean>;
  /** Removes a file that its writer has abandoned. @returns false for any other file, which stays */
  discard(file: string): Promise<boolean>;
}

type Rewritable = 'lines' | 'blob' | 'plan';

/**
 * Erases the subjects from files, as the kind of each file needs. A file that holds a subject is rewritten and replaces the
 * version that was read; if another process has replaced that version, the new one is read. Then the manifest gets a line,
 * earlier versions are purged, and the file is searched again.
 */
export class FileErasure {
  /** Files that were removed before they could be looked at. */
  readonly vanished: string[] = [];
  /** Files that something was erased from. */
  readonly replaced: string[] = [];
  readonly #place: PlaceRun;
  readonly #files: ErasableFiles;

  constructor(place: PlaceRun, files: ErasableFiles) {
    this.#place = place;
    this.#files = files;
  }

  /** Completes what an interrupted run has recorded: the line in the manifest, and the purge. */
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
      await this.#byKind[this.#files.kindOf(file)](file);
      if (this.#place.search.finds(Buffer.from(file)) && (await this.#isThere(file)))
        this.#leave(file, [], NAMED_AFTER_ID);
    });
  }

  /** Looks at a file that another process is writing. */
  lookAt(file: string): Promise<void> {
    return this.#attempt(file, () => this.#lookAt(file));
  }

  async purge(file: string): Promise<void> {
    for (const version of await this.#files.purge(file))
      this.#leave(`${file} (${version})`, [], 'the store still keeps it; it goes with the store’s own rule');
  }

  async #attempt(file: string, work: () => Promise<void>): Promise<void> {
    const { run } = this.#place;
    run.signal.throwIfAborted();
    try {
      await work();
    } catch (error) {
      // A MillraceError concerns the whole place.
      if (run.signal.aborted || error instanceof MillraceError) throw error;
      if (isGone(error)) this.vanished.push(file);
      else if (error instanceof NotSearched) this.#leave(file, [], error.message);
      else this.#place.leaveFailed(this.#files.prefix + file, error);
    }
  }

  readonly #byKind: Readonly<Record<FileKind, (file: string) => Promise<void>>> = {
    lines: (file) => this.#records(file, 'lines'),
    blob: (file) => this.#records(file, 'blob'),
    plan: (file) => this.#rewrite(file, 'plan'),
    other: (file) => this.#other(file),
    lock: () => Promise.resolve(),
    temporary: async (file) => void (await this.#files.discard(file)),
    unreadable: () => Promise.reject(new NotSearched('this kind of file')),
  };

  async #isThere(file: string): Promise<boolean> {
    try {
      await this.#files.versionOf(file);
      return true;
    } catch (error) {
      if (isGone(error)) return false;
      throw error;
    }
  }

  async #records(file: string, kind: Rewritable): Promise<void> {
    const { run, search } = this.#place;
    const { found, bytes } = await searchFile(this.#files.bytes, file, search, run.signal);
    run.searched(bytes);
    if (mayHaveOwnerlessRows(file) && (await hasOwnerlessRow(this.#files.bytes, file)))
      this.#leave(file, [], 'it has rows that do not say whose they are; recreate it without the user');
    if (!found) return;
    if (await this.#files.isBeingWritten(file)) return this.#lookAt(file);
    run.onStep('found');
    await this.#rewrite(file, kind);
  }

  async #rewrite(file: string, kind: Rewritable): Promise<void> {
    try {
      for (let tries = 1; tries <= TRIES; tries += 1)
        if (await this.#replace(file, kind, tries < PATIENT_TRIES)) return;
    } finally {
      await rm(this.#files.temporaryFor(file), { force: true });
    }
    throw new Error('others replace it faster than it can be rewritten; run the erasure again');
  }

  /** Rewrites one version of a file, or removes it. @returns false when the file has another version by now */
  async #replace(file: string, kind: Rewritable, isPatient: boolean): Promise<boolean> {
    const { name, run } = this.#place;
    const { listing, prefix } = this.#files;
    const version = await this.#files.versionOf(file);
    const rewrite = await this.#rewritten(this.#files.pinned(version), file, kind).catch((error: unknown) => {
      if (error instanceof StorageError && error.fault === 'changed') return 'changed' as const;
      throw error;
    });
    if (rewrite === 'changed') return false;
    if (rewrite === null) return true;
    // Another erasure has replaced it and not listed it yet, or was killed in between.
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
      // Takes the record back.
      await run.record({ ...item, removed: {} });
      return false;
    }
    this.replaced.push(file);
    run.onStep('replaced');
    await listing.add(file, { ...rewrite, at });
    run.onStep('listed');
    await this.purge(file);
    run.onStep('purged');
    if (after !== null && kind === 'lines') await this.#verify(file);
    return true;
  }

  async #rewritten(bytes: Bytes, file: string, kind: Rewritable): Promise<Rewrite | null> {
    const { run, owners, search } = this.#place;
    if (kind === 'blob') return eventRewrite(bytes, file, owners);
    const temporary = this.#files.temporaryFor(file);
    if (kind === 'plan') return rewritePlan(bytes, file, temporary, new Owners(run.subjects));
    const like = await this.#files.ownerOf(file);
    return rewriteLines({ bytes, file, temporary, like }, owners, search, run.signal);
  }

  /** Searches the rewritten file: no record of the subjects may be in it. */
  async #verify(file: string): Promise<void> {
    const { run, search } = this.#place;
    const { bytes } = this.#files;
    if (!(await searchFile(bytes, file, search, run.signal)).found) return;
    const left = await this.#rewritten(bytes, file, 'lines');
    if (left !== null) this.#leave(file, Object.keys(left.removed), 'records of the user are in it again');
  }

  async #other(file: string): Promise<void> {
    const { run } = this.#place;
    const { requests, bytes } = await requestsInOther(this.#files.bytes, file, run.subjects);
    run.searched(bytes);
    if (requests.length === 0 || (await this.#files.discard(file))) return;
    const left = leftOfOther(file, requests);
    this.#leave(file, left.requests, left.reason);
  }

  async #lookAt(file: string): Promise<void> {
    if (kindOf(file) !== 'lines') return;
    const { search, owners } = this.#place;
    const requests = new Set<string>();
    for await (const lines of fileLines(this.#files.bytes, file))
      for (const { bytes } of lines)
        if (bytes !== null && mayHold(bytes, search))
          for (const request of owners.ofLine(bytes)) requests.add(request);
    if (requests.size === 0) return;
    this.#leave(file, [...requests], 'another process is writing to it, or did so a moment ago');
  }

  #leave(file: string, requests: readonly string[], reason: string): void {
    this.#place.leave(this.#files.prefix + file, requests, reason);
  }
}

/** No request waits for a name: manifests contain it for ever, and a sink may give it to its next file. */
const NAMED_AFTER_ID =
  'its name holds the id, its records do not; rename or remove it where no manifest lists it';
