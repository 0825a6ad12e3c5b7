import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { APPEND, openPlain, OWNER_ONLY, readIfThere, syncFolder, writeAll } from './durable.ts';

/** The values of a file that has one on each line; none when there is no such file. */
export function readJsonLines<T>(path: string): T[] {
  return (readIfThere(path) ?? '').split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as T];
    } catch {
      // Cut short by a crash, before anybody was told that it is written.
      return [];
    }
  });
}

/** Adds a line, durable once it resolves, to a file that only its owner may read. */
export function appendJsonLine(path: string, value: object): Promise<void> {
  return appendLines(path, [JSON.stringify(value)]);
}

/** The same for several lines at once, as texts without line breaks. */
export async function appendLines(path: string, lines: readonly string[]): Promise<void> {
  const handle = await openPlain(path, APPEND, OWNER_ONLY);
  let size: number;
  try {
    ({ size } = await handle.stat());
    // A line that a crash cut short was never acted upon; the next begins on a line of its own.
    const start = size === 0 || (await lastByte(handle, size)) === LINE_FEED ? '' : '\n';
    await writeAll(handle, Buffer.from(start + lines.map((line) => `${line}\n`).join('')), size);
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (size === 0) await syncFolder(dirname(path));
}

const LINE_FEED = 10;

async function lastByte(handle: FileHandle, size: number): Promise<number> {
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, size - 1);
  return byte[0] ?? 0;
}
