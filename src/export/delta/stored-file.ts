import type { AsyncBuffer } from 'hyparquet';
import type { ObjectStore } from '../../core/storage.ts';

/** Up to this size, one request for all bytes is faster than one for each column. */
const SMALL = 8 * 1024 * 1024;

/** An object for the Parquet reader. A small one is read at once, a larger one slice by slice. */
export function storedFile(
  store: ObjectStore,
  key: string,
  byteLength: number,
  signal: AbortSignal,
): AsyncBuffer {
  const read = async (from: number, to: number): Promise<ArrayBuffer> => {
    const bytes = Buffer.from(new ArrayBuffer(to - from));
    let length = 0;
    for await (const chunk of store.get(key, { offset: from, signal })) {
      length += chunk.copy(bytes, length);
      if (length === bytes.length) break;
    }
    if (length < bytes.length) throw new Error(`${key} ends before byte ${to}`);
    return bytes.buffer;
  };
  let whole: Promise<ArrayBuffer> | null = null;
  return {
    byteLength,
    slice: async (from, to = byteLength) => {
      if (byteLength > SMALL) return read(from, to);
      whole ??= read(0, byteLength).catch((error: unknown) => {
        whole = null;
        throw error;
      });
      return (await whole).slice(from, to);
    },
  };
}
