import type { AsyncBuffer } from 'hyparquet';
import type { ObjectStore } from '../core/storage.ts';

/** An object as the Parquet reader asks for it: each slice is read when it is wanted. */
export function storedFile(
  store: ObjectStore,
  key: string,
  byteLength: number,
  signal: AbortSignal,
): AsyncBuffer {
  return {
    byteLength,
    slice: async (from, to = byteLength) => {
      const bytes = Buffer.alloc(to - from);
      let length = 0;
      for await (const chunk of store.get(key, { offset: from, signal })) {
        length += chunk.copy(bytes, length);
        if (length === bytes.length) break;
      }
      if (length < bytes.length) throw new Error(`${key} ends before byte ${to}`);
      return bytes.buffer;
    },
  };
}
