import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ManifestWriter } from '../../archive/manifest-writer.ts';
import type { FileLine } from '../../core/archive-manifest.ts';
import type { Compression } from '../../core/compression.ts';
import { messageOf } from '../../core/errors.ts';
import type { SinkLog } from '../../core/sink.ts';
import { ensureFolder, isMissing, syncFolder } from '../../lib/durable.ts';
import { compress } from './compress.ts';
import type { Part } from './part.ts';
import type { Finishing, FinishStep } from './target.ts';

/** Where a part is to be finished, and how. */
export interface Finish extends Finishing {
  /** The archive's folder, absolute. */
  readonly root: string;
  readonly manifest: ManifestWriter;
  readonly compression: Compression;
  readonly log: SinkLog;
  /** Called after each step; tests kill the process in it. */
  readonly onStep: (step: FinishStep) => void;
}

/**
 * Turns a sealed part into a finished file: written beside the part, synced, renamed, listed in the manifest; only then
 * is the part removed. Doing it again after a crash at any step gives the same file and one manifest line, because the
 * part is there until everything else is durable. Throws when a step fails or the signal aborts; the part is then as it was.
 */
export async function finishPart(part: Part, finish: Finish): Promise<string> {
  const { root, manifest, signal, onStep, log } = finish;
  const compression = part.compression ?? finish.compression;
  const name = part.finishedName(compression);
  onStep('sealed');
  const written = await compress(part, compression, signal);
  onStep('written');
  signal.throwIfAborted();
  const folder = await ensureFolder(root, part.place.folder);
  await rename(part.temporaryPath, join(root, name));
  await syncFolder(folder);
  onStep('renamed');
  await manifest.append(lineOf(part, name, written));
  onStep('listed');
  // Not a failure: what is listed is finished, and the next open removes the part at the latest.
  await removePart(part).catch((error: unknown) => {
    log.warn({ file: name, error: messageOf(error) }, 'part of a closed file could not be removed');
    finish.onLeft(part, () => removePart(part));
  });
  onStep('removed');
  return name;
}

/** What a line is made of. */
interface Listed extends Pick<Part, 'stats'> {
  readonly place: Pick<Part['place'], 'stem'>;
}

/** The manifest's line of a part's finished file. */
export function lineOf(
  part: Listed,
  file: string,
  written: { readonly bytes: number; readonly sha256: string },
): Omit<FileLine, 'previous'> {
  const { stats } = part;
  return {
    file,
    records: stats.records,
    ...written,
    first_received_at: isoTime(stats.firstReceivedAt, part),
    last_received_at: isoTime(stats.lastReceivedAt, part),
    types: Object.fromEntries(stats.types),
  };
}

/** For good: a power cut would otherwise bring back what an erasure takes out of the finished file next. */
export async function removePart({ path }: Pick<Part, 'path'>): Promise<void> {
  // It can be gone from an earlier try, whose sync failed.
  await rm(path, { force: true });
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      return await syncFolder(folder);
    } catch (error) {
      // Another part that was finished meanwhile was the last in the folder, which is gone with it.
      if (!isMissing(error)) throw error;
    }
  }
}

/** A part none of whose records can be read has no times but the one in its name, that of its first record. */
function isoTime(ms: number, { place }: Listed): string {
  if (Number.isFinite(ms)) return new Date(ms).toISOString();
  const named = place.stem.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)(\d{3}Z).*$/, '$1-$2-$3:$4:$5.$6');
  const time = Date.parse(named);
  return new Date(Number.isNaN(time) ? 0 : time).toISOString();
}
