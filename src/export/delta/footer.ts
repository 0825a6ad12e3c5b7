import type { ObjectStore } from '../../core/storage.ts';

/** More than the footers of most files have. */
const GUESS = 64 * 1024;
/** The length of the footer, and what a Parquet file ends with. */
const TAIL = 8;

/** The end of a Parquet file, with all of its footer. */
export async function readFooter(
  store: ObjectStore,
  key: string,
  size: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const guess = await readEnd(store, key, Math.min(size, GUESS), size, signal);
  const length = guess.readUInt32LE(guess.length - TAIL) + TAIL;
  return length <= guess.length ? guess : readEnd(store, key, Math.min(size, length), size, signal);
}

async function readEnd(
  store: ObjectStore,
  key: string,
  length: number,
  size: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of store.get(key, { offset: size - length, signal })) chunks.push(chunk);
  return Buffer.concat(chunks);
}
