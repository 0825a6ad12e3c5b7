/** One line of a text, as bytes. */
export interface Line {
  /** From 1. */
  readonly number: number;
  /** Without its line break; null when it was longer than allowed. */
  readonly bytes: Buffer | null;
  /** Offset of the first byte after the line and its break. */
  readonly end: number;
  /** False for a last line without a line break. */
  readonly ended: boolean;
}

const LINE_FEED = 10;

export interface CutOptions {
  /** Bytes above which a line is not kept. */
  readonly longest?: number | undefined;
  /** True for a line that is not needed: it is counted, and usually not yielded. */
  readonly passesOver?: ((bytes: Buffer, from: number, to: number) => boolean) | undefined;
  /** Called with a chunk when the caller has finished with its lines, so that the chunk can be used again. */
  readonly onTaken?: ((chunk: Buffer) => void) | undefined;
}

/** Number of line breaks. */
export function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines += 1;
  return lines;
}

/**
 * Cuts a stream of bytes at its line feeds, in memory bounded by a chunk and the longest line. Yields the lines of one chunk at a
 * time: a step of an async generator for each line would cost more than the cutting. The last line of a chunk is always yielded; its
 * number says how many there were.
 */
export async function* cutLines(
  chunks: AsyncIterable<Buffer>,
  { longest = Number.POSITIVE_INFINITY, passesOver, onTaken }: CutOptions = {},
): AsyncGenerator<Line[]> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = 0;
  let end = 0;
  const finish = (rest: Buffer, ended: boolean): Line => {
    const size = heldBytes + rest.length;
    const bytes = size > longest ? null : held.length === 0 ? rest : Buffer.concat([...held, rest], size);
    held = [];
    heldBytes = 0;
    number += 1;
    end += size + (ended ? 1 : 0);
    return { number, bytes, end, ended };
  };
  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let from = 0;
    for (let to = chunk.indexOf(LINE_FEED); to !== -1;) {
      const next = chunk.indexOf(LINE_FEED, to + 1);
      if (next !== -1 && heldBytes === 0 && passesOver?.(chunk, from, to) === true) {
        number += 1;
        end += to + 1 - from;
      } else lines.push(finish(chunk.subarray(from, to), true));
      from = to + 1;
      to = next;
    }
    if (from < chunk.length) {
      heldBytes += chunk.length - from;
      if (heldBytes > longest) held = [];
      else held.push(onTaken === undefined ? chunk.subarray(from) : Buffer.from(chunk.subarray(from)));
    }
    if (lines.length > 0) yield lines;
    onTaken?.(chunk);
  }
  if (heldBytes > 0) yield [finish(Buffer.alloc(0), false)];
}

/** Passes chunks on, and shows each to `look` before. */
export async function* tap(
  chunks: AsyncIterable<Buffer>,
  look: (chunk: Buffer) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    look(chunk);
    yield chunk;
  }
}
