import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hashFile } from '../archive/facts.ts';
import { fileLines } from '../archive/file-lines.ts';
import { isUnfinished } from '../archive/file-kind.ts';
import { FolderPlace } from '../archive/folder-place.ts';
import { DISK, type Bytes } from '../archive/place.ts';
import { readManifest } from '../archive/manifest.ts';
import { ManifestWriter } from '../archive/manifest-writer.ts';
import { MANIFEST } from '../core/archive.ts';
import type { ErasureLine, ManifestLine } from '../core/archive-manifest.ts';
import type { ErasureRun } from '../core/erasure.ts';
import type { OpenProof } from '../core/proof.ts';
import type { SinkLog } from '../core/sink.ts';
import { Contents } from './contents.ts';
import { kindOf } from './file-kinds.ts';
import type { Rewrite } from './rewrite-lines.ts';

/** What is listed of one file after it was changed. */
export type Change = Omit<Rewrite, 'before'> & { readonly at: Date };

/** The manifest of a folder, if it is an archive: continues with a line for each file that an erasure changes. */
export class Listing {
  readonly #root: string;
  readonly #writer: ManifestWriter | null;

  constructor(root: string, log: SinkLog, proof?: OpenProof) {
    this.#root = root;
    this.#writer = existsSync(join(root, MANIFEST)) ? new ManifestWriter(root, log, proof) : null;
  }

  /** Durable once it resolves. What is in no archive is not listed. */
  async add(file: string, change: Change): Promise<void> {
    if (this.#writer === null || !isListed(file)) return;
    await this.#writer.append(lineFor(file, change, change.at));
  }

  /** Lists what an earlier run of these requests had changed when it was ended, before it could say so here. */
  async finishInterrupted(at: { store: string; prefix: string }, run: ErasureRun): Promise<void> {
    const recorded = run.recorded
      .filter(({ store, item }) => store === at.store && item.startsWith(at.prefix))
      .map((item) => ({ ...item, item: item.item.slice(at.prefix.length) }))
      .filter(({ item }) => isListed(item));
    if (this.#writer === null || recorded.length === 0) return;
    const erased = new Set<string>();
    const onEntry = (entry: ManifestLine): void => {
      if ('erasure' in entry) erased.add(`${entry.sha256} ${entry.file}`);
    };
    const listing = { place: new FolderPlace(this.#root), manifest: [MANIFEST] };
    const { entries } = await readManifest(listing, { onEntry });
    for (const { item: file, removed, sha256_before: before, sha256_after: after } of recorded) {
      const isKnown = isUnfinished(file)
        ? erased.has(`${after} ${file}`)
        : entries.get(file)?.sha256 !== before;
      if (isKnown || before === after) continue;
      const onDisk = existsSync(join(this.#root, file)) ? await hashFile(DISK, join(this.#root, file)) : null;
      if ((onDisk?.sha256 ?? null) !== after) continue;
      const contents = onDisk === null ? new Contents() : await contentsOf(DISK, join(this.#root, file));
      const lines = Object.values(removed).reduce((sum, count) => sum + count, 0);
      await this.add(file, {
        removed,
        lines,
        contents,
        after: after === null ? null : { sha256: after, bytes: onDisk?.bytes ?? 0 },
        at: new Date(),
      });
    }
  }
}

/** What the manifest has lines for. */
export function isListed(file: string): boolean {
  const kind = kindOf(file);
  return kind === 'lines' || kind === 'blob';
}

/** What the manifest is to say of a file that was changed. */
export function lineFor(
  file: string,
  { removed, lines, after, contents }: Change,
  at: Date,
): Omit<ErasureLine, 'previous'> {
  return {
    erasure: Object.keys(removed).join(','),
    at: at.toISOString(),
    file,
    removed: lines,
    records: contents?.records ?? 0,
    bytes: after?.bytes ?? 0,
    sha256: after?.sha256 ?? null,
    first_received_at: contents?.first ?? null,
    last_received_at: contents?.last ?? null,
    types: contents?.types ?? {},
  };
}

export async function contentsOf(place: Bytes, file: string): Promise<Contents> {
  const contents = new Contents();
  for await (const lines of fileLines(place, file)) {
    for (const { bytes } of lines) if (bytes !== null) contents.add(bytes);
  }
  return contents;
}
