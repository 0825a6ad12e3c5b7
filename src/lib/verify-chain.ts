import { join } from 'node:path';
import { asideFiles, CHAIN_START, hashLine, readTip, type ChainTip } from './chained-log.ts';
import { errorCode, readPlain } from './durable.ts';
import { cutLines } from './lines.ts';

/** One line as it stands in a chained log; what was logged is beside these. */
export interface ChainedLine {
  readonly n: number;
  /** ISO 8601. */
  readonly at: string;
  readonly prev: string;
  /** Lines up to this number were removed, the oldest of too many. */
  readonly cleared?: number;
}

export interface ChainReport {
  readonly lines: number;
  /** Number of the first line that is kept; 0 when there is none. */
  readonly first: number;
  /** Of the last line. */
  readonly head: ChainTip;
  /** What is not as it was written; each names file and line. */
  readonly problems: readonly string[];
}

/**
 * Holds a chained log against itself: numbers, hashes, and the head beside it.
 * @param head a hash noted elsewhere, which must be that of one of the lines
 */
export async function verifyChain(
  folder: string,
  name: string,
  { head, onLine }: { readonly head?: string; readonly onLine?: (line: ChainedLine) => void } = {},
): Promise<ChainReport> {
  // Before the lines: one that is added meanwhile is then only further than the head.
  const written = readTip(folder, name);
  const problems: string[] = [];
  let [before, lines, first, cleared] = [CHAIN_START, 0, 0, 0];
  let isKnown = head === undefined;
  const files = [...(await asideFiles(folder, name)).map(({ file }) => file), `${name}.jsonl`];
  for (const file of files) {
    for await (const { number, bytes } of wholeLines(join(folder, file))) {
      const where = `${file}:${number}`;
      const line = parse(bytes);
      if (line === null) problems.push(`${where}: not a line of this log`);
      else {
        if (lines === 0) first = line.n;
        if (lines > 0 || line.n === 1) problems.push(...linkProblems(where, line, before));
        cleared = Math.max(cleared, line.cleared ?? 0);
        onLine?.(line);
      }
      lines += 1;
      before = { n: line?.n ?? before.n + 1, hash: hashLine(bytes) };
      if (before.n === written?.n && before.hash !== written.hash)
        problems.push(`${where}: line ${before.n} was changed`);
      if (before.hash === head) isKnown = true;
    }
  }
  if (first > cleared + 1) problems.push(`lines 1 to ${first - 1} are missing`);
  if (written === null && lines > 0) problems.push(`${name}.head is missing`);
  if (written !== null && written.n > before.n)
    problems.push(`lines ${before.n + 1} to ${written.n} are missing at the end`);
  if (!isKnown) problems.push(`no line has the hash ${head}`);
  return { lines, first, head: before, problems };
}

function linkProblems(where: string, line: ChainedLine, before: ChainTip): string[] {
  if (line.n !== before.n + 1) return [`${where}: line ${line.n} follows line ${before.n}`];
  return line.prev === before.hash ? [] : [`${where}: line ${before.n}, before it, was changed`];
}

/** Without a last line that has no end: it is being written, or was when the process died. */
async function* wholeLines(path: string): AsyncGenerator<{ number: number; bytes: Buffer }> {
  try {
    for await (const lines of cutLines(readPlain(path)))
      for (const { number, bytes, ended } of lines) if (ended && bytes !== null) yield { number, bytes };
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

function parse(bytes: Buffer): ChainedLine | null {
  try {
    const line = JSON.parse(bytes.toString('utf8')) as Partial<ChainedLine> | null;
    const fits =
      Number.isSafeInteger(line?.n) && typeof line?.prev === 'string' && typeof line.at === 'string';
    return fits ? (line as ChainedLine) : null;
  } catch {
    return null;
  }
}
