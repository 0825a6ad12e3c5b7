import type { BodyReader } from './body.ts';
import type { Upload } from './driver.ts';

/** Makes a request as often as it takes. */
export type Attempt = <T>(request: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Bytes of one body in memory at most, but for one part that is larger. */
const IN_MEMORY = 32 * 1024 * 1024;

/**
 * Uploads a body in parts, as many at once as the store takes and memory may hold. What was
 * uploaded is removed when a part cannot be.
 * @param size of the body
 * @returns as `Upload.finish`
 */
export async function writeParts(
  upload: Upload,
  body: BodyReader,
  { size, partBytes, attempt }: { size: number; partBytes: number; attempt: Attempt },
): Promise<string> {
  const count = Math.ceil(size / partBytes);
  const failed = new AbortController();
  let next = 0;
  const fitting = Math.max(1, Math.floor(IN_MEMORY / partBytes));
  const lanes = Array.from({ length: Math.min(upload.parallel, fitting, count) }, async () => {
    try {
      while (next < count && !failed.signal.aborted) {
        const number = next++;
        const offset = number * partBytes;
        const part = { offset, length: Math.min(partBytes, size - offset), most: partBytes };
        await body.with(part, (bytes, tried) =>
          attempt((signal) => {
            tried();
            return upload.part(number, offset, bytes, signal);
          }),
        );
      }
    } catch (error) {
      failed.abort();
      throw error;
    }
  });
  try {
    await Promise.all(lanes);
    return await attempt((signal) => upload.finish(signal));
  } catch (error) {
    // A part that arrives after the removal would stay.
    await Promise.allSettled(lanes);
    throw error;
  }
}
