import { AppendFile } from './append-file.ts';
import { OWNER_ONLY, readIfThere } from './durable.ts';

/** The values of a file with one on each line; none when the file does not exist. */
export function readJsonLines<T>(path: string): T[] {
  return jsonLinesOf(readIfThere(path) ?? '');
}

/** The values of such a file's text. */
export function jsonLinesOf<T>(text: string): T[] {
  return text.split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as T];
    } catch {
      // Cut short by a crash, before the write was acknowledged.
      return [];
    }
  });
}

/** Adds a line, durable once it resolves, to a file with mode 0600 that this process alone writes. */
export function appendJsonLine(path: string, value: object): Promise<void> {
  return appendLines(path, [JSON.stringify(value)]);
}

/** As `appendJsonLine`, for several lines at once, as texts without line breaks. */
export async function appendLines(path: string, lines: readonly string[]): Promise<void> {
  // A last line without its break is completed: it may have been read, and acted upon.
  const { file } = await AppendFile.openLines(path, OWNER_ONLY, 'end');
  try {
    await file.append(Buffer.from(lines.map((line) => `${line}\n`).join('')));
  } finally {
    await file.close();
  }
}
