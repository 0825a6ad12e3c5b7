import { DISK } from '../../archive/place.ts';
import { leftBy, Owners, type ErasableStore, type ErasureRun } from '../../core/erasure.ts';
import { IdSearch } from '../../core/id-search.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { deltaTablesIn, eraseTable, isOfTable } from './delta-tables.ts';
import type { Erasing } from './file-erasure.ts';
import { isSearched, LineOwners, type EnvelopeFields } from './file-kinds.ts';
import { searchFile } from './search-file.ts';

/** Times a place is listed again because files have come and gone. */
const PASSES = 5;

/**
 * Keeps those off a place who would restore what is taken out.
 * @returns null when it is not searched now; the run has been told why, unless nothing is there
 */
export type Hold = (name: string, run: ErasureRun) => Promise<HeldPlace | null>;

/** A folder or an object store in which an erasure works. */
export interface HeldPlace {
  readonly store: ObjectStore;
  /** What its files are called in messages. */
  readonly word: 'files' | 'objects';
  /** Times it is listed at least: what others have read before it was rewritten they may put after the list. */
  readonly passes: number;
  /** All files there, each with what another after each change has; that is empty where writers are kept off. */
  list(erasing: Erasing): Promise<ReadonlyMap<string, string>>;
  /** Takes the subjects out of some files. @returns those that the next pass has to look at */
  erase(erasing: Erasing, files: readonly string[]): Promise<readonly string[]>;
  /** All files have been looked at. */
  finish(run: ErasureRun): Promise<void>;
  release(): Promise<void>;
}

export interface PlaceErasureOptions {
  /** For receipts: the folder or URL as the config has it. */
  readonly name: string;
  readonly hold: Hold;
  /** Where kept events say whose they are. */
  readonly fields: EnvelopeFields;
  /** Asks the sink that is writing here to finish the open files for which `holds` answers true. */
  readonly settle?: (holds: (path: string) => Promise<boolean>) => Promise<void>;
}

/** A place of files that hold data of users: an archive, tables, the output of a backfill, or anything else. */
export class PlaceErasure implements ErasableStore {
  readonly name: string;
  readonly #options: PlaceErasureOptions;

  constructor(options: PlaceErasureOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Searches every file, and rewrites or removes those that hold a subject; the others are not touched. */
  async erase(run: ErasureRun): Promise<void> {
    const { name, hold, fields, settle } = this.#options;
    const place = await hold(name, run);
    if (place === null) return;
    try {
      const search = new IdSearch(run.subjects);
      await settle?.(async (file) => (await searchFile(DISK, file, search, run.signal)).found);
      const owners = new LineOwners(new Owners(run.subjects), fields);
      await this.#passes({ name, run, search, owners }, place);
      await place.finish(run);
    } finally {
      await place.release();
    }
  }

  /** What writers have put or finished since a list was made is looked at in a list made anew. */
  async #passes(erasing: Erasing, place: HeldPlace): Promise<void> {
    const seen = new Map<string, string>();
    for (let pass = 1; ; pass += 1) {
      const [restless] = await this.#pass(erasing, place, seen);
      if (restless === undefined && pass >= place.passes) return;
      if (pass < PASSES) continue;
      const reason = new Error(`${place.word} come and go faster than they can be searched`);
      if (restless !== undefined)
        erasing.run.leave(leftBy(this.name, restless, erasing.run.subjects, reason));
      return;
    }
  }

  /** Looks at every file that is new, or has changed. @returns those that the next pass has to look at */
  async #pass(erasing: Erasing, place: HeldPlace, seen: Map<string, string>): Promise<readonly string[]> {
    const files = await place.list(erasing);
    const tables = deltaTablesIn([...files.keys()]);
    for (const prefix of tables) {
      if (!seen.has(prefix)) await eraseTable({ ...erasing, store: place.store, prefix });
      seen.set(prefix, '');
    }
    const due: string[] = [];
    for (const [file, version] of files) {
      if (seen.get(file) === version || isOfTable(file, tables)) continue;
      seen.set(file, version);
      due.push(file);
    }
    erasing.run.expected?.(due.filter(isSearched).length);
    const restless = await place.erase(erasing, due);
    for (const file of restless) seen.delete(file);
    return restless;
  }
}
