import type { FileHandle } from 'node:fs/promises';

const TAIL_BYTES = 64 * 1024;
const LINE_FEED = 10;

/** Where the last line break below `size` ends; 0 when there is none. */
export async function lastEnd(handle: FileHandle, size: number): Promise<number> {
  const { bytes, from } = await readBack(handle, size, (tail) => tail.includes(LINE_FEED));
  return from + bytes.lastIndexOf(LINE_FEED) + 1;
}

/** The line whose line break ends at `end`, without it; empty at the beginning of the file. */
export async function lineBefore(handle: FileHandle, end: number): Promise<Buffer> {
  if (end === 0) return Buffer.alloc(0);
  const { bytes } = await readBack(handle, end - 1, (tail) => tail.includes(LINE_FEED));
  return bytes.subarray(bytes.lastIndexOf(LINE_FEED) + 1);
}

/** What stands in front of `end`: as much as is enough, or all of it. */
async function readBack(
  handle: FileHandle,
  end: number,
  isEnough: (bytes: Buffer) => boolean,
): Promise<{ bytes: Buffer; from: number }> {
  for (let want = TAIL_BYTES; ; want *= 4) {
    const length = Math.min(want, end);
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await handle.read(bytes, 0, length, end - length);
    if (bytesRead < length) throw new Error('the file changed while it was read');
    if (length === end || isEnough(bytes)) return { bytes, from: end - length };
  }
}
