import { MANIFEST } from '../core/archive.ts';
import { isCompaction, parseManifestLine, type ManifestLine } from '../core/archive-manifest.ts';
import { chainOf, chainPrefix, parseSegmentKey, type Segment } from './segments.ts';
import { hashLine } from '../lib/chained-log.ts';
import { cutLines } from '../lib/lines.ts';
import { LineJudge, type LineCounts, type StoredLine, type Trust } from './judge.ts';
import type { Bytes } from './place.ts';
import type { Difference } from './report.ts';

/** Linked lines of a manifest: all of a folder's manifest, or those of one writer to a store. */
interface Chain {
  /** For messages: its file, or the folder of its segments. */
  readonly name: string;
  /** Null for a folder's manifest. */
  readonly writer: string | null;
  /** In order. */
  readonly pieces: readonly ChainFile[];
  /** Joined into a larger segment by a writer that was killed before it deleted them. */
  readonly contained: readonly ChainFile[];
  /** Faults that the names of the files show. */
  readonly differences: readonly Difference[];
}

/** A file with lines of a chain. */
interface ChainFile {
  readonly file: string;
  /** Number of its first line. */
  readonly first: number;
  /** Number of its last line by its name; null for a folder's manifest. */
  readonly last: number | null;
}

/** @param files the files of a manifest */
export function chainsOf(files: readonly string[]): Chain[] {
  const own = { name: MANIFEST, writer: null, contained: [], differences: [] };
  const pieces = [{ file: MANIFEST, first: 1, last: null }];
  const segments = files.flatMap((file) => {
    const segment = parseSegmentKey(file);
    return segment === null ? [] : [{ ...segment, file }];
  });
  const byWriter = [...Map.groupBy(segments, ({ writer }) => writer)];
  return [
    ...(files.includes(MANIFEST) ? [{ ...own, pieces }] : []),
    ...byWriter.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([writer, theirs]) => ofWriter(writer, theirs)),
  ];
}

function ofWriter(writer: string, segments: readonly (Segment & ChainFile)[]): Chain {
  const { chain, contained, gaps } = chainOf(segments);
  const name = chainPrefix(writer).slice(0, -1);
  const differences = gaps.map(({ after, before: { file, first } }): Difference => {
    if (first <= after) {
      const detail = 'begins among lines that another object has, and ends behind them';
      return { code: 'segment_differs', file, line: null, detail };
    }
    const lines = after + 2 === first ? `line ${after + 1} is` : `lines ${after + 1} to ${first - 1} are`;
    return {
      code: 'segment_missing',
      file: name,
      line: null,
      detail: `${lines} missing: the object was removed`,
    };
  });
  return { name, writer, pieces: chain, contained, differences };
}

/** A chain after it was read. */
export interface ChainFacts extends Pick<Chain, 'name' | 'writer'> {
  /** Number of the last line. */
  readonly lines: number;
  /** Hash of the last line, or of the empty string. A noted head proves later that no end was cut off. */
  readonly head: string;
  /** Line number by hash, of complete lines. */
  readonly hashes: ReadonlyMap<string, number>;
  readonly signatures: LineCounts;
  /** Whether lines are forged, or unsigned after signed ones. */
  readonly isForged: boolean;
  /** Number of the first broken line; null for a sound chain. */
  readonly brokenAt: number | null;
  readonly cutShort: boolean;
  readonly differences: readonly Difference[];
}

interface Link {
  readonly file: string;
  readonly number: number;
  readonly previous: string;
}

/**
 * Reads one chain from its first line to its last.
 * @param trust null checks signatures only where that is cheap
 * @param onEntry called for each line; refused are forged lines and erasures without a receipt. A compaction by an
 *   unknown key is not refused: its file may hold the only copy of the records
 */
export async function readChain(
  bytes: Bytes,
  chain: Chain,
  trust: Trust | null,
  onEntry: (entry: ManifestLine, isRefused: boolean) => void,
): Promise<ChainFacts> {
  const judge = new LineJudge(trust);
  const hashes = new Map<string, number>();
  const broken: Link[] = [];
  const differences: Difference[] = [...chain.differences];
  let isForged = false;
  let brokenAt: number | null = null;
  let cutShort = false;
  let lines = 0;
  let head = hashLine('');
  for (const piece of chain.pieces) {
    const { file } = piece;
    const from = Math.max(piece.first, lines + 1);
    if (piece.first !== lines + 1) brokenAt ??= from;
    for await (const stored of linesOf(bytes, piece)) {
      const { number, text, entry, ended } = stored;
      if (number < from) continue;
      lines = number;
      cutShort = !ended;
      const verdict = ended && entry !== null ? judge.judge(stored) : null;
      if (verdict !== null) {
        const [code, detail] = verdict;
        differences.push({ code, file, line: number, detail });
        isForged ||= code === 'line_forged' || code === 'line_unsigned';
      }
      if (entry === null) {
        const detail = ended ? 'not a manifest line' : 'the line has no end';
        differences.push({ code: 'manifest_line_invalid', file, line: number, detail });
        brokenAt ??= number;
      } else {
        if (entry.previous !== head) {
          broken.push({ file, number, previous: entry.previous });
          brokenAt ??= number;
        }
        onEntry(entry, verdict !== null && !(isCompaction(entry) && verdict[0] === 'line_untrusted'));
      }
      head = hashLine(text);
      if (ended) hashes.set(head, number);
    }
    if (piece.last === null || lines === piece.last) continue;
    const detail = `ends with line ${lines}, and its name says ${piece.last}`;
    differences.push({ code: 'segment_differs', file, line: null, detail });
    brokenAt ??= lines;
  }
  for (const { file, number, previous } of broken)
    differences.push({
      code: 'chain_broken',
      file,
      line: number,
      detail: explainBrokenLink(number, previous, hashes),
    });
  if (trust !== null) differences.push(...(await compareContained(bytes, chain.contained, hashes)));
  const { counts: signatures } = judge;
  const { name, writer } = chain;
  return { name, writer, lines, head, hashes, signatures, isForged, brokenAt, cutShort, differences };
}

async function* linesOf(bytes: Bytes, { file, first }: ChainFile): AsyncGenerator<StoredLine> {
  for await (const lines of cutLines(bytes.chunks(file))) {
    for (const { number, bytes: line, ended } of lines) {
      const text = line ?? Buffer.alloc(0);
      const entry = ended ? parseManifestLine(text.toString()) : null;
      yield { number: first + number - 1, text, entry, ended };
    }
  }
}

/** Lines of a joined segment must be the same in the larger one. */
async function compareContained(
  bytes: Bytes,
  contained: readonly ChainFile[],
  hashes: ReadonlyMap<string, number>,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const piece of contained) {
    for await (const { number, text } of linesOf(bytes, piece)) {
      if (hashes.get(hashLine(text)) === number) continue;
      const detail = 'another object has another line of this number';
      differences.push({ code: 'segment_differs', file: piece.file, line: number, detail });
      break;
    }
  }
  return differences;
}

function explainBrokenLink(number: number, previous: string, hashes: ReadonlyMap<string, number>): string {
  const elsewhere = hashes.get(previous);
  if (elsewhere !== undefined)
    return `follows from line ${elsewhere}, not from the one before it: lines were reordered`;
  if (previous === hashLine('')) return 'was the first line: lines were reordered, or inserted before it';
  if (number === 1) return 'was not the first line: lines before it were removed or changed';
  return `does not follow from line ${number - 1}: that was changed, or lines between were removed`;
}
