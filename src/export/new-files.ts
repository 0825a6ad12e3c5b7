import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { COMPRESSIONS } from '../core/compression.ts';
import { folderError, MillraceError } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { errorCode } from '../lib/durable.ts';
import type { StorageSettings } from '../storage/fields.ts';
import { openStore } from '../storage/open.ts';
import { dayOf } from '../tables/sql/dialects/source.ts';
import { linesInFolder } from './export-folder.ts';
import { type ExportStep, standingIn } from './export-step.ts';
import { linesInStore } from './export-store.ts';
import { notIn, WORK } from './export-target.ts';
import { temporaryName, type WrittenFile } from './outputs.ts';
import { readStepLog } from './step-log.ts';

/** A file of an export that came or went after a step. */
export interface ChangedFile
  extends Pick<WrittenFile, 'table' | 'file'>, Partial<Pick<WrittenFile, 'rows' | 'bytes' | 'sha256'>> {
  readonly step: number;
  /** Of a file that was removed, rows, bytes and hash are unknown. */
  readonly action: 'load' | 'remove';
  /** Day that its rows came in, UTC; null for an export without partitions, or an invalid time. */
  readonly dt: string | null;
}

const terms = z.object({ format: z.enum(['parquet', 'ndjson']), compression: z.enum(COMPRESSIONS) });

const isDelta = z.object({ format: z.literal('delta') });

/** What has changed in an export since a step. */
export interface Changes {
  /** Format of its files. */
  readonly terms: z.output<typeof terms>;
  /** The step to name next time, when all of this is loaded. */
  readonly step: number;
  readonly files: readonly ChangedFile[];
  /** Folders of a table and day that have changed, and still have files. */
  readonly days: readonly string[];
  /** Folders that have no files any more. */
  readonly emptied: readonly string[];
  /** Files that are not listed because an erasure removed them, or they are lost. */
  readonly lost: readonly string[];
  /** The last step, when it is not listed because not all of it is there yet. */
  readonly leftOut: number | null;
}

/**
 * Lists what came and went after a step. Nothing is stored: a consumer that is interrupted before it has saved the step gets the
 * same again, and what came since.
 * @param folder or the URL of an object store; another command may be writing it
 * @param after the last step the consumer has loaded; 0 for none
 * @throws MillraceError usage when there is no export, or it has not got that far; folder_unwritable when it cannot be read
 */
export async function changesAfter(
  folder: string,
  after: number,
  storage?: StorageSettings,
): Promise<Changes> {
  const read = await readExport(folder, storage).catch((error: unknown) => {
    throw folderError(folder, error);
  });
  if (read === null || read.found === null) throw new MillraceError('usage', `${folder} holds no export`);
  const { steps, found, lost, leftOut } = read;
  if (isDelta.safeParse(found).success)
    throw new MillraceError(
      'usage',
      `${folder} holds Delta tables: read these, or export as Parquet or NDJSON into another folder`,
    );
  const last = steps.at(-1)?.step ?? 0;
  if (after > last)
    throw new MillraceError(
      'usage',
      `${folder} has only ${last} steps: step ${after} is of another export; load this one after step 0, into empty tables`,
    );
  const isLater = ({ step }: Pick<ExportStep, 'step'>): boolean => step > after;
  const standing = standingIn(steps).flatMap(madeBy);
  const made = standing.filter(isLater);
  const removed = steps.filter(isLater).flatMap(removedBy);
  const files = [...removed, ...made.filter(({ file }) => !lost.has(file))];
  const full = new Set(standing.map(({ file }) => dirname(file)));
  const touched = [...new Set(files.map(({ file }) => dirname(file)))].sort();
  return {
    terms: terms.parse(found),
    step: last,
    files,
    days: touched.filter((day) => full.has(day)),
    emptied: touched.filter((day) => !full.has(day)),
    lost: made.map(({ file }) => file).filter((file) => lost.has(file)),
    leftOut: leftOut?.step ?? null,
  };
}

/**
 * Reads the log of an export without its lock. A last step whose files do not all have their names is left out; the next run
 * completes it.
 * @param place a folder, or a URL
 * @returns null when there is no export
 * @throws Error when the log cannot be read
 */
async function readExport(place: string, storage?: StorageSettings) {
  const store = await openStore(place, storage);
  const isUrl = isStoreUrl(place);
  try {
    const { steps: all, found } = await readStepLog(isUrl ? linesInStore(store) : linesInFolder(place));
    const last = all.at(-1);
    const isComplete =
      last === undefined || (isUrl ? await areThere(last, store) : !hasUnfinished(last, place));
    const steps = isComplete ? all : all.slice(0, -1);
    const lost = await notIn(
      store,
      standingIn(steps).flatMap(({ files }) => files),
    );
    return { steps, found, lost: new Set(lost), leftOut: isComplete ? null : last };
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode((error as Error).cause) === 'ENOENT') return null;
    throw error;
  } finally {
    await store.close();
  }
}

/** Files without their names are in the work folder, and replaced files are removed last. */
function hasUnfinished({ files, removes }: ExportStep, folder: string): boolean {
  return (
    files.some(({ file }) => existsSync(join(folder, WORK, temporaryName(file)))) ||
    removes.some((file) => existsSync(join(folder, file)))
  );
}

/** The work folder is on another machine. */
async function areThere({ files, removes }: ExportStep, store: ObjectStore): Promise<boolean> {
  for (const { file } of files) if ((await store.head(file)) === null) return false;
  for (const file of removes) if ((await store.head(file)) !== null) return false;
  return true;
}

function madeBy({ step, files }: ExportStep): ChangedFile[] {
  return files.flatMap(({ file, table, rows, bytes, sha256 }) =>
    isRows(file) ? { step, action: 'load', table, dt: dayOf(dirname(file)), file, rows, bytes, sha256 } : [],
  );
}

function removedBy({ step, removes }: ExportStep): ChangedFile[] {
  return removes.flatMap((file) =>
    isRows(file) ? { step, action: 'remove', table: tableOf(file), dt: dayOf(dirname(file)), file } : [],
  );
}

/** False for a file of what was rejected, which is no table's. */
function isRows(file: string): boolean {
  return !file.startsWith('_rejects/');
}

function tableOf(file: string): string {
  return file.slice(0, file.indexOf('/'));
}
