import { join } from 'node:path';
import { CHAIN_START, hashLine, readTip, rotatedFiles, type ChainTip } from './chained-log.ts';
import { errorCode, readPlain } from './durable.ts';
import { cutLines } from './lines.ts';
import { jsonIn } from './parsed.ts';

/** The fields that every line of a chained log has. */
export interface ChainedLine {
  readonly n: number;
  /** ISO 8601. */
  readonly at: string;
  readonly prev: string;
  /** Lines up to this number were removed with the oldest files. */
  readonly cleared?: number;
}

export interface ChainReport {
  readonly lines: number;
  /** Number of the first line; 0 when there is none. */
  readonly first: number;
  /** The last line. */
  readonly head: ChainTip;
  /** What was changed or is missing, each with file and line. */
  readonly problems: readonly string[];
}

/**
 * Checks the numbers and hashes of a chained log, and its head file.
 * @param head a hash noted elsewhere, which one of the lines must have
 */
export async function verifyChain(
  folder: string,
  name: string,
  { head, onLine }: { readonly head?: string; readonly onLine?: (line: ChainedLine) => void } = {},
): Promise<ChainReport> {
  // Read before the lines, so that a line added in between is only beyond the head.
  const written = readTip(folder, name);
  const problems: string[] = [];
  let [before, lines, first, cleared] = [CHAIN_START, 0, 0, 0];
  let isKnown = head === undefined;
  const files = [...rotatedFiles(folder, name).map(({ file }) => file), `${name}.jsonl`];
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

/** Leaves out a last line without its line break: it is being written, or was when a process ended. */
async function* wholeLines(path: string): AsyncGenerator<{ number: number; bytes: Buffer }> {
  try {
    for await (const lines of cutLines(readPlain(path)))
      for (const { number, bytes, ended } of lines) if (ended && bytes !== null) yield { number, bytes };
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

function parse(bytes: Buffer): ChainedLine | null {
  const line = jsonIn(bytes.toString('utf8')) as Partial<ChainedLine> | null;
  const isValid =
    Number.isSafeInteger(line?.n) && typeof line?.prev === 'string' && typeof line.at === 'string';
  return isValid ? (line as ChainedLine) : null;
}
