import { AppendFile } from './append-file.ts';
import { OWNER_ONLY, readIfThere } from './durable.ts';

/** The values of a file that has one on each line; none when there is no such file. */
export function readJsonLines<T>(path: string): T[] {
  return jsonLinesOf(readIfThere(path) ?? '');
}

/** The same of its text. */
export function jsonLinesOf<T>(text: string): T[] {
  return text.split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as T];
    } catch {
      // Cut short by a crash, before anybody was told that it is written.
      return [];
    }
  });
}

/** Adds a line, durable once it resolves, to a file that only its owner may read and nobody else writes meanwhile. */
export function appendJsonLine(path: string, value: object): Promise<void> {
  return appendLines(path, [JSON.stringify(value)]);
}

/** The same for several lines at once, as texts without line breaks. */
export async function appendLines(path: string, lines: readonly string[]): Promise<void> {
  // Not cut off: a line that lacks only its break may have been read, and acted upon.
  const { file } = await AppendFile.openLines(path, OWNER_ONLY, 'end');
  try {
    await file.append(Buffer.from(lines.map((line) => `${line}\n`).join('')));
  } finally {
    await file.close();
  }
}
