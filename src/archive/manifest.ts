import { join } from 'node:path';
import { hashLine, MANIFEST, parseManifestEntry, type ManifestEntry } from '../core/archive.ts';
import { readPlain } from '../lib/durable.ts';
import { cutLines } from '../lib/lines.ts';
import type { Difference } from './report.ts';

/** A manifest as it stands, with what is wrong with it. */
export interface Manifest {
  /** By file; the last line of a file counts. */
  readonly entries: ReadonlyMap<string, ManifestEntry>;
  /** Files with more than one line. */
  readonly superseded: ReadonlySet<string>;
  readonly differences: readonly Difference[];
}

/**
 * Reads a manifest and checks its chain. After a broken link the chain is followed from the line as it stands, so that
 * one changed line is one difference.
 * @param root the archive's folder
 */
export async function readManifest(root: string): Promise<Manifest> {
  const entries = new Map<string, ManifestEntry>();
  const superseded = new Set<string>();
  const differences: Difference[] = [];
  const differ = (code: Difference['code'], line: number, detail: string): void => {
    differences.push({ code, file: MANIFEST, line, detail });
  };
  let previous = hashLine('');
  for await (const lines of cutLines(readPlain(join(root, MANIFEST)))) {
    for (const { number, bytes, ended } of lines) {
      const text = bytes ?? Buffer.alloc(0);
      const entry = ended ? parseManifestEntry(text.toString()) : null;
      if (entry === null) {
        differ('manifest_line_invalid', number, ended ? 'not a manifest line' : 'the line has no end');
      } else {
        if (entry.previous !== previous)
          differ('chain_broken', number, 'does not follow from the line before it');
        if (entries.has(entry.file)) superseded.add(entry.file);
        entries.set(entry.file, entry);
      }
      previous = hashLine(text);
    }
  }
  return { entries, superseded, differences };
}
