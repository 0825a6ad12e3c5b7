import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isStoreUrl } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { errorCode } from '../lib/durable.ts';
import type { StorageSettings } from '../storage/fields.ts';
import { openStore } from '../storage/open.ts';
import type { ExportStep } from './export-step.ts';
import { ledgerLines } from './folder-place.ts';
import { readLedger } from './ledger.ts';
import { notIn, WORK } from './place.ts';
import { temporaryName } from './outputs.ts';
import { storedLines } from './store-place.ts';

export interface ReadExport {
  readonly steps: ExportStep[];
  readonly terms: unknown;
  /** Files of steps that stand, and are not there: an erasure removed them, or they are lost. */
  readonly lost: ReadonlySet<string>;
  /** A last step that is left out. */
  readonly leftOut: ExportStep | null;
}

/**
 * What an export says of itself, without its lock: another command may be at it. A last step whose files have not got their
 * names yet is left out; the next run sees to that.
 * @param place a folder, or a URL
 * @returns null when there is no export
 * @throws Error when its ledger cannot be read
 */
export async function readExport(place: string, storage?: StorageSettings): Promise<ReadExport | null> {
  const store = await openStore(place, storage);
  const isUrl = isStoreUrl(place);
  try {
    const { steps: all, found: terms } = await readLedger(isUrl ? storedLines(store) : ledgerLines(place));
    const last = all.at(-1);
    const isSettled =
      last === undefined || (isUrl ? await areThere(last, store) : !hasUnfinished(last, place));
    const leftOut = isSettled ? null : last;
    const steps = leftOut === null ? all : all.slice(0, -1);
    const replaced = new Set(steps.flatMap(({ replaces }) => replaces));
    const files = steps.filter(({ step }) => !replaced.has(step)).flatMap((step) => step.files);
    return { steps, terms, lost: new Set(await notIn(store, files)), leftOut };
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode((error as Error).cause) === 'ENOENT') return null;
    throw error;
  } finally {
    await store.close();
  }
}

/** In a folder what has no name yet lies in the work folder; what it replaces goes last. */
function hasUnfinished({ files, removes }: ExportStep, folder: string): boolean {
  return (
    files.some(({ file }) => existsSync(join(folder, WORK, temporaryName(file)))) ||
    removes.some((file) => existsSync(join(folder, file)))
  );
}

/** The work folder is another machine's. */
async function areThere({ files, removes }: ExportStep, store: ObjectStore): Promise<boolean> {
  for (const { file } of files) if ((await store.head(file)) === null) return false;
  for (const file of removes) if ((await store.head(file)) !== null) return false;
  return true;
}
