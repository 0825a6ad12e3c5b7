/**
 * The manifest of an archive in an object store. Objects cannot be appended to, so each writer adds objects to a chain of
 * its own: `_manifest/<writer>/<first>-<last>.jsonl`, first and last being the numbers of its lines in that chain, from 1.
 * The lines are those of a manifest in a folder (`archive-manifest.ts`): each has the hash of the one before it, and line 1
 * follows from the hash of the empty string.
 *
 * Now and then a writer puts one object that covers many of its own, and then deletes those: until it has, lines lie in
 * two objects, and `chainOf` passes over the smaller ones.
 */
export interface Segment {
  /** 12 lower-case hex digits. */
  readonly writer: string;
  /** Number of its first line. */
  readonly first: number;
  /** Number of its last line, itself among them. */
  readonly last: number;
}

/**
 * The chain that all compactions of an archive share. Each object of it is put where the last one ends, if nothing is there:
 * of two compactions at once only one can continue.
 */
export const COMPACTIONS = '000000000000';

/** Begins the keys of all segments. */
export const SEGMENTS = '_manifest/';

const KEY = /^_manifest\/([0-9a-f]{12})\/(\d{10})-(\d{10})\.jsonl$/;

/** Begins the keys of one writer's segments. */
export function chainPrefix(writer: string): string {
  return `${SEGMENTS}${writer}/`;
}

export function segmentKey({ writer, first, last }: Segment): string {
  return `${chainPrefix(writer)}${padded(first)}-${padded(last)}.jsonl`;
}

/** Null for what is not the key of a segment. */
export function parseSegmentKey(key: string): Segment | null {
  const [, writer, from, to] = KEY.exec(key) ?? [];
  if (writer === undefined) return null;
  const [first, last] = [Number(from), Number(to)];
  return first >= 1 && first <= last ? { writer, first, last } : null;
}

/**
 * One writer's segments in the order in which their lines follow each other.
 * @returns `contained`: those all of whose lines are in one of the chain; `gaps`: segments that do not begin with the line
 * after the last before them, because lines are missing, or lie in both
 */
export function chainOf<T extends Segment>(segments: readonly T[]) {
  const chain: T[] = [];
  const contained: T[] = [];
  const gaps: { after: number; before: T }[] = [];
  let end = 0;
  for (const segment of segments.toSorted((one, other) => one.first - other.first || other.last - one.last)) {
    if (segment.last <= end) {
      contained.push(segment);
      continue;
    }
    if (segment.first !== end + 1) gaps.push({ after: end, before: segment });
    chain.push(segment);
    end = segment.last;
  }
  return { chain, contained, gaps };
}

function padded(number: number): string {
  return String(number).padStart(10, '0');
}
