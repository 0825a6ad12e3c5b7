import { dirname } from 'node:path';
import { folderError, MillraceError } from '../core/errors.ts';
import { z } from 'zod';
import type { StorageSettings } from '../storage/fields.ts';
import type { ExportStep } from './export-step.ts';
import { readExport } from './read-export.ts';
import { COMPRESSIONS } from '../core/compression.ts';

/** A file of an export that came or went after a step. */
export interface ChangedFile {
  readonly step: number;
  readonly action: 'load' | 'remove';
  readonly table: string;
  /** Day that its rows came in, UTC; null for an export without partitions, or a time that is none. */
  readonly dt: string | null;
  /** Below the export's folder. */
  readonly file: string;
  /** Unknown of a file that was removed. */
  readonly rows?: number;
  readonly bytes?: number;
  readonly sha256?: string;
}

const terms = z.object({ format: z.enum(['parquet', 'ndjson']), compression: z.enum(COMPRESSIONS) });

const isDelta = z.object({ format: z.literal('delta') });

/** What has changed in an export since a consumer has looked. */
export interface Changes {
  /** What all its files of rows are. */
  readonly terms: z.output<typeof terms>;
  /** The step to name next time, once all of this is loaded. */
  readonly step: number;
  readonly files: readonly ChangedFile[];
  /** Folders of a table and day that have changed, and still have files. */
  readonly days: readonly string[];
  /** Those that have none any more. */
  readonly emptied: readonly string[];
  /** Files that are not listed as they are not there: an erasure removed them, or they are lost. */
  readonly lost: readonly string[];
  /** The last step, when it is not listed as not all of it is there yet. */
  readonly leftOut: number | null;
}

/**
 * Lists what came and went after a step. It keeps nothing: a consumer that is interrupted before it has noted the step gets
 * the same again, and whatever came since.
 * @param folder or the URL of an object store
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
  if (read === null || read.terms === null) throw new MillraceError('usage', `${folder} holds no export`);
  const { steps, terms: found, lost, leftOut } = read;
  if (isDelta.safeParse(found).success)
    throw new MillraceError(
      'usage',
      `${folder} holds Delta tables, which say themselves what is new: read them as such`,
    );
  const last = steps.at(-1)?.step ?? 0;
  if (after > last)
    throw new MillraceError(
      'usage',
      `${folder} is at step ${last}: step ${after} is another export's; load this one from step 0 into empty tables`,
    );
  const later = steps.filter(({ step }) => step > after);
  const replaced = new Set(steps.flatMap(({ replaces }) => replaces));
  const made = later.filter(({ step }) => !replaced.has(step)).flatMap((step) => madeBy(step));
  const files = [...later.flatMap((step) => removedBy(step)), ...made.filter(({ file }) => !lost.has(file))];
  const standing = steps.filter(({ step }) => !replaced.has(step)).flatMap((step) => madeBy(step));
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

function madeBy({ step, files }: ExportStep): ChangedFile[] {
  return files.flatMap(({ file, table, rows, bytes, sha256 }) =>
    isRows(file) ? { step, action: 'load', table, dt: dayOf(file), file, rows, bytes, sha256 } : [],
  );
}

function removedBy({ step, removes }: ExportStep): ChangedFile[] {
  return removes.flatMap((file) =>
    isRows(file) ? { step, action: 'remove', table: tableOf(file), dt: dayOf(file), file } : [],
  );
}

/** What was rejected lies beside the tables, and is no table's. */
function isRows(file: string): boolean {
  return !file.startsWith('_rejects/');
}

function tableOf(file: string): string {
  return file.slice(0, file.indexOf('/'));
}

function dayOf(file: string): string | null {
  return /\/dt=(\d{4}-\d{2}-\d{2})\//.exec(file)?.[1] ?? null;
}
