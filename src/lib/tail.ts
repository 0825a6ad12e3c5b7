import type { FileHandle } from 'node:fs/promises';

const TAIL_BYTES = 64 * 1024;
const LINE_FEED = 10;

/** Bytes that a disk writes at once. */
const SECTOR = 512;

/** The end of a file, with the whole last line. */
export function readTail(handle: FileHandle, size: number): Promise<{ bytes: Buffer; from: number }> {
  return readBack(handle, size, (tail) => tail.lastIndexOf(LINE_FEED, -2) !== -1);
}

/**
 * End of the complete lines: behind the last line break, and before a line with a sector that was never written. Lines contain no NUL.
 * @param bytes end of a file
 * @param from their position in it
 */
export function endOfComplete(bytes: Buffer, from: number): number {
  const end = bytes.lastIndexOf(LINE_FEED) + 1;
  const hole = holeIn(bytes.subarray(0, end), from);
  return from + (hole === -1 ? end : bytes.subarray(0, hole).lastIndexOf(LINE_FEED) + 1);
}

/**
 * Position of a sector of zeros, which a power cut leaves of an interrupted write; -1 without one. A single NUL is damage, and no hole.
 * @param bytes complete lines, written without NULs
 * @param from their position in the file
 */
export function holeIn(bytes: Buffer, from: number): number {
  for (let nul = bytes.indexOf(0); nul !== -1; nul = bytes.indexOf(0, nul + 1)) {
    const sector = Math.max(0, (Math.floor((from + nul) / SECTOR) + 1) * SECTOR - from);
    const stretch = bytes.subarray(nul, sector);
    const begins = nul === 0 || bytes[nul - 1] === LINE_FEED || (from + nul) % SECTOR === 0;
    if (begins && stretch.every((byte) => byte === 0)) return nul;
  }
  return -1;
}

/** The line that ends with the line break before `end`, without it; empty at the beginning of the file. */
export async function lineBefore(handle: FileHandle, end: number): Promise<Buffer> {
  if (end === 0) return Buffer.alloc(0);
  const { bytes } = await readBack(handle, end - 1, (tail) => tail.includes(LINE_FEED));
  return bytes.subarray(bytes.lastIndexOf(LINE_FEED) + 1);
}

/** The bytes before `end`: as many as `isEnough` wants, or all. */
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
