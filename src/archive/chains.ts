import { MANIFEST } from '../core/archive.ts';
import { chainOf, chainPrefix, parseSegmentKey, type Segment } from '../core/archive-segments.ts';
import type { Difference } from './report.ts';

/** Lines of a manifest that follow from each other: all of a folder's, or those of one writer to a store. */
export interface Chain {
  /** For messages: its file, or the folder of its segments. */
  readonly name: string;
  /** Null for a folder's own. */
  readonly writer: string | null;
  /** In their order. */
  readonly pieces: readonly Piece[];
  /** What a writer has put into one larger piece, and was killed before it deleted it. */
  readonly contained: readonly Piece[];
  /** What their names say is wrong. */
  readonly differences: readonly Difference[];
}

/** A file with lines of a chain. */
export interface Piece {
  readonly file: string;
  /** Numbers of its first and last line; the last is null where only the file itself says it. */
  readonly first: number;
  readonly last: number | null;
}

/** @param files all that a manifest is made of */
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

function ofWriter(writer: string, segments: readonly (Segment & Piece)[]): Chain {
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
