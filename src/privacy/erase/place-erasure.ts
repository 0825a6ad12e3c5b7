import { DISK } from '../../archive/place.ts';
import type { ErasableStore, ErasureRun } from '../../core/erasure.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { deltaTablesIn, eraseTable, isOfTable } from './delta-tables.ts';
import { isSearched, type EnvelopeFields } from './file-kinds.ts';
import { PlaceRun } from './place-run.ts';
import { searchFile } from './search-file.ts';

/** Times a place is listed again because files have come and gone. */
const PASSES = 5;

/**
 * Opens a place for one run, and keeps out writers that would restore what is erased.
 * @returns null when it is not searched now: nothing is there, or the reason was reported
 */
export type OpenPlace = (place: PlaceRun) => Promise<OpenedPlace | null>;

/** A folder, or a prefix of an object store, in which an erasure works. */
export interface OpenedPlace {
  readonly store: ObjectStore;
  /** What its files are called in messages. */
  readonly word: 'files' | 'objects';
  /** Times it is listed at least: a writer that is not kept out may put what it read before the list. */
  readonly leastPasses: number;
  /** All files, each with its version; the version is empty where writers are kept out. */
  list(): Promise<ReadonlyMap<string, string>>;
  /** Erases the subjects from these files. @returns the files that the next pass has to look at again */
  erase(files: readonly string[]): Promise<readonly string[]>;
  /** Called once all files have been looked at. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

export interface PlaceErasureOptions {
  /** For receipts: the folder or URL as the config has it. */
  readonly name: string;
  readonly open: OpenPlace;
  /** Where events that were kept whole name their user. */
  readonly fields: EnvelopeFields;
  /** Asks the sinks that write here to close the open files for which `holds` answers true. */
  readonly settle?: (holds: (path: string) => Promise<boolean>) => Promise<void>;
}

/**
 * A place of files to erase from: an archive, tables, the output of a backfill, or anything else. Every file is searched, and
 * those that hold a subject are rewritten or removed.
 */
export function placeErasure({ name, open, fields, settle }: PlaceErasureOptions): ErasableStore {
  const erase = async (run: ErasureRun): Promise<void> => {
    const place = new PlaceRun(name, run, fields);
    const opened = await open(place);
    if (opened === null) return;
    try {
      await settle?.(async (file) => (await searchFile(DISK, file, place.search, run.signal)).found);
      await passes(place, opened);
      await opened.finish();
    } finally {
      await opened.close();
    }
  };
  return { name, erase };
}

/** Lists the place again for what writers have put or closed since it was listed. */
async function passes(place: PlaceRun, opened: OpenedPlace): Promise<void> {
  const seen = new Map<string, string>();
  for (let pass = 1; pass <= PASSES; pass += 1) {
    const [restless] = await lookAtNew(place, opened, seen);
    if (restless === undefined && pass >= opened.leastPasses) return;
    if (restless !== undefined && pass === PASSES)
      place.leaveFailed(restless, new Error(`${opened.word} come and go faster than they can be searched`));
  }
}

/** Looks at every file that is new, or has changed. @returns the files that the next pass has to look at again */
async function lookAtNew(
  place: PlaceRun,
  { store, ...opened }: OpenedPlace,
  seen: Map<string, string>,
): Promise<readonly string[]> {
  const files = await opened.list();
  const tables = deltaTablesIn([...files.keys()]);
  for (const prefix of tables) {
    if (!seen.has(prefix)) await eraseTable(place, store, prefix);
    seen.set(prefix, '');
  }
  const due: string[] = [];
  for (const [file, version] of files) {
    if (seen.get(file) === version || isOfTable(file, tables)) continue;
    seen.set(file, version);
    due.push(file);
  }
  place.run.expected?.(due.filter(isSearched).length);
  const restless = await opened.erase(due);
  for (const file of restless) seen.delete(file);
  return restless;
}
