import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { compactArchive, type CompactOptions, type CompactReport } from '../../src/archive/compact.ts';
import { Places } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import type { Compression } from '../../src/core/compression.ts';
import { openStore } from '../../src/storage/open.ts';
import { makeErasable } from '../privacy/erase/objects-support.ts';
import { idsRead as idsReadIn } from '../support/archives.ts';
import { hooked } from './store-archive.ts';

export const KINDS = ['folder', 's3'] as const;
export type Kind = (typeof KINDS)[number];

/** As the store that is a folder is called. */
export const URL = 's3://made-up/archive';

/** Users 1 to 4, each with records 0 to 3: what the archives here are made of, said apart from the archives. */
export const ALL_IDS = [1, 2, 3, 4].flatMap((user) => [0, 1, 2, 3].map((n) => `msg_${user}_${n}`));

export const idsWithout = (...gone: number[]): string[] =>
  ALL_IDS.filter((id) => !gone.some((user) => id.startsWith(`msg_${user}_`)));

/** Folder in which the archive lies: as a folder's, or, below a made-up URL, as a store's. */
export function pathOf(root: string, kind: Kind): string {
  return join(root, kind === 'folder' ? 'archive' : 'store');
}

export function nameOf(root: string, kind: Kind): string {
  return kind === 'folder' ? pathOf(root, kind) : URL;
}

/** @param before waited for in front of each request of the store */
export function placesOf(root: string, before?: Parameters<typeof hooked>[1]): Places {
  return new Places(null, async () => {
    const store = await openStore(join(root, 'store'));
    return before === undefined ? store : hooked(store, before);
  });
}

/** An archive of several files in a folder, and the same as two receivers leave it in a store. */
export async function makeTemplate(root: string, compression: Compression = 'gzip'): Promise<void> {
  await makeErasable(await openStore(join(root, 'store')), join(root, 'archive'), {
    compressions: [compression],
  });
}

/** Options of a run that compacts all files, and reports nothing. */
export function compactOptions(places: Places): CompactOptions {
  return {
    places,
    targetBytes: 2 ** 20,
    minAge: 0,
    dryRun: false,
    now: Date.now() + 1000,
    trust: { keys: new Set(), receipts: null },
    proof: undefined,
    signal: new AbortController().signal,
    onMade: () => undefined,
    onProgress: () => undefined,
    onUnlisted: () => undefined,
    onProblem: () => undefined,
  };
}

export async function compacted(
  root: string,
  kind: Kind,
  changes: Partial<CompactOptions> = {},
): Promise<CompactReport & { readonly reported: readonly string[] }> {
  const places = placesOf(root);
  const reported: string[] = [];
  try {
    const report = await compactArchive(nameOf(root, kind), {
      ...compactOptions(places),
      onProblem: (file, reason) => reported.push(`${file}: ${reason}`),
      ...changes,
    });
    return { ...report, reported };
  } finally {
    await places.close();
  }
}

/** What every reader of millrace's sees, in order. */
export async function idsRead(root: string, kind: Kind): Promise<string[]> {
  const places = placesOf(root);
  const ids = await idsReadIn(nameOf(root, kind), { places });
  await places.close();
  return ids.sort();
}

export async function verified(root: string, kind: Kind): Promise<string[]> {
  const places = placesOf(root);
  const { differences } = await verifyArchive(nameOf(root, kind), { places });
  await places.close();
  return differences.map(({ code, file, detail }) => `${code} ${file}: ${detail}`);
}

/** Finished files: every name with `.ndjson` in it. */
export function filesOf(root: string, kind: Kind): string[] {
  const path = pathOf(root, kind);
  return (
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.includes('.ndjson'))
      .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
      // Locks of the folder that stands for a store are none of its objects.
      .filter((file) => !file.startsWith('_open/') && !(kind === 's3' && file.endsWith('.lock.tmp')))
      .toSorted()
  );
}

/** The ids in all files, without a look at the manifest. */
export function idsInFiles(root: string, kind: Kind): string[] {
  const ids: string[] = [];
  for (const file of filesOf(root, kind)) {
    const bytes = readFileSync(join(pathOf(root, kind), file));
    const lines = String(file.endsWith('.gz') ? gunzipSync(bytes) : bytes).trimEnd();
    ids.push(...lines.split('\n').map((line) => (JSON.parse(line) as { readonly id: string }).id));
  }
  return ids.toSorted();
}
