import { AppendFile } from './append-file.ts';
import { bytesIfThere, OWNER_ONLY } from './durable.ts';
import { isRecord, jsonIn } from './parsed.ts';
import { holeIn } from './tail.ts';

const LINE_FEED = 10;

/** The objects of a file with one on each line; none when the file does not exist. @throws Error naming the line */
export function readJsonLines<T>(path: string): T[] {
  return jsonLinesOf(bytesIfThere(path) ?? Buffer.alloc(0));
}

/**
 * The objects in such a file's bytes.
 * @param where begins the error's text
 * @throws Error naming a line that is no object, except a last one that a crash has cut short
 */
export function jsonLinesOf<T>(bytes: Buffer, where = ''): T[] {
  const lines = bytes.toString('utf8', 0, endOfLines(bytes, 0)).split('\n');
  return lines.flatMap((line, at) => {
    if (line === '') return [];
    const value = jsonIn(line);
    if (isRecord(value)) return [value as T];
    throw new Error(`${where}line ${at + 1} is damaged`);
  });
}

/** Adds a line, durable once it resolves, to a file with mode 0600 that this process alone writes. */
export function appendJsonLine(path: string, value: object): Promise<void> {
  return appendLines(path, [JSON.stringify(value)]);
}

/** As `appendJsonLine`, for several lines at once, as texts without line breaks. */
export async function appendLines(path: string, lines: readonly string[]): Promise<void> {
  const { file } = await AppendFile.openLines(path, OWNER_ONLY, endOfLines);
  try {
    await file.append(Buffer.from(lines.map((line) => `${line}\n`).join('')));
  } finally {
    await file.close();
  }
}

/**
 * End of what counts: all, or before a last line that a crash has cut short, which was never acknowledged. One that lacks only its
 * line break counts: an editor may have saved it.
 * @param bytes of the file from `from`, with the whole last line
 */
function endOfLines(bytes: Buffer, from: number): number {
  const start = bytes.lastIndexOf(LINE_FEED, -2) + 1;
  const last = bytes.subarray(start);
  const counts =
    last.at(-1) === LINE_FEED ? holeIn(last, from + start) === -1 : isRecord(jsonIn(last.toString()));
  return from + (counts ? bytes.length : start);
}
