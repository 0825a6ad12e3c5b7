import { join } from 'node:path';
import { MANIFEST } from '../core/archive.ts';
import { parseManifestLine, type ErasureLine, type ManifestLine } from '../core/archive-manifest.ts';
import { readPlain } from '../lib/durable.ts';
import { cutLines } from '../lib/lines.ts';
import { LineJudge, type LineCounts, type StoredLine, type Trust } from './judge.ts';
import type { Difference } from './report.ts';
import { hashLine } from '../lib/chained-log.ts';

/** A manifest as it stands, with what is wrong with it. */
export interface Manifest {
  /** By file; the newest line of a file counts, which may be one that says that an erasure removed it. */
  readonly entries: ReadonlyMap<string, ManifestLine>;
  /** Files with a line before the newest that says something else. */
  readonly superseded: ReadonlySet<string>;
  /** Files listed anew after an erasure had changed them. */
  readonly returned: ReadonlyMap<string, ErasureLine>;
  readonly lines: number;
  /** Hash of the last line; of the empty string when there is none. Whoever has noted it can tell a cut end later. */
  readonly head: string;
  /** Line number by hash, of every line that has its end. */
  readonly hashes: ReadonlyMap<string, number>;
  readonly signatures: LineCounts;
  /** Numbers of lines that no writer of this archive wrote, or, of erasures, that have no receipt. */
  readonly refused: ReadonlySet<number>;
  /** Of these, those that nobody with a key wrote. */
  readonly forged: ReadonlySet<number>;
  /** The line from which on the chain or a line is not sound; null when all is. */
  readonly brokenAt: number | null;
  /** Whether the last line has no end. */
  readonly cutShort: boolean;
  readonly differences: readonly Difference[];
}

interface Link {
  readonly number: number;
  readonly previous: string;
}

/**
 * Reads a manifest and checks its chain. After a broken link the chain is followed from the line as it stands, so that
 * one changed line is one difference. An erasure that is refused does not count: the line before it of its file does.
 * @param root the archive's folder
 * @param trust what its lines are judged by; null where a cheap look is enough
 */
export async function readManifest(root: string, trust: Trust | null = null): Promise<Manifest> {
  const judge = new LineJudge(trust);
  const refused = new Set<number>();
  const forged = new Set<number>();
  const entries = new Map<string, ManifestLine>();
  const superseded = new Set<string>();
  const returned = new Map<string, ErasureLine>();
  const hashes = new Map<string, number>();
  const broken: Link[] = [];
  const differences: Difference[] = [];
  let brokenAt: number | null = null;
  let cutShort = false;
  let lines = 0;
  let head = hashLine('');
  for await (const stored of manifestLines(root)) {
    const { number, text, entry, ended } = stored;
    lines = number;
    cutShort = !ended;
    const verdict = ended && entry !== null ? judge.judge(stored) : null;
    if (verdict !== null) {
      const [code, detail] = verdict;
      differences.push({ code, file: MANIFEST, line: number, detail });
      refused.add(number);
      if (code === 'line_forged' || code === 'line_unsigned') forged.add(number);
    }
    if (entry === null) {
      const detail = ended ? 'not a manifest line' : 'the line has no end';
      differences.push({ code: 'manifest_line_invalid', file: MANIFEST, line: number, detail });
      brokenAt ??= number;
    } else {
      if (entry.previous !== head) {
        broken.push({ number, previous: entry.previous });
        brokenAt ??= number;
      }
      const before = entries.get(entry.file);
      const counts = verdict === null || !('erasure' in entry);
      if (counts && before !== undefined && before.sha256 !== entry.sha256) superseded.add(entry.file);
      if (before !== undefined && 'erasure' in before && !('erasure' in entry))
        returned.set(entry.file, before);
      if (counts) entries.set(entry.file, entry);
    }
    head = hashLine(text);
    if (ended) hashes.set(head, number);
  }
  for (const link of broken) {
    differences.push({
      code: 'chain_broken',
      file: MANIFEST,
      line: link.number,
      detail: explain(link, hashes),
    });
  }
  const { counts: signatures } = judge;
  const found = { signatures, refused, forged, brokenAt, cutShort, differences };
  return { entries, superseded, returned, lines, head, hashes, ...found };
}

/** The lines of a manifest in order, each taken apart. */
export async function* manifestLines(root: string): AsyncGenerator<StoredLine> {
  for await (const lines of cutLines(readPlain(join(root, MANIFEST)))) {
    for (const { number, bytes, ended } of lines) {
      const text = bytes ?? Buffer.alloc(0);
      yield { number, text, entry: ended ? parseManifestLine(text.toString()) : null, ended };
    }
  }
}

/** What a link that does not fit says about the lines around it. */
function explain({ number, previous }: Link, hashes: ReadonlyMap<string, number>): string {
  const elsewhere = hashes.get(previous);
  if (elsewhere !== undefined)
    return `follows from line ${elsewhere}, not from the one before it: lines were reordered`;
  if (previous === hashLine('')) return 'was the first line: lines were reordered, or inserted before it';
  if (number === 1) return 'was not the first line: lines before it were removed or changed';
  return `does not follow from line ${number - 1}: that was changed, or lines between were removed`;
}
