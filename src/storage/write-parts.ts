import type { BodyReader } from './body.ts';
import type { Upload } from './driver.ts';

/** Makes a request as often as it takes. */
export type Attempt = <T>(request: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * Uploads a body in parts, as many at once as the store takes, so that memory holds that many parts and no more. What was
 * uploaded is removed when a part cannot be.
 * @param size of the body
 * @returns as `Upload.finish`
 */
export async function writeParts(
  upload: Upload,
  body: BodyReader,
  { size, partBytes, attempt }: { size: number; partBytes: number; attempt: Attempt },
): Promise<string | null> {
  const count = Math.ceil(size / partBytes);
  const failed = new AbortController();
  let next = 0;
  const lanes = Array.from({ length: Math.min(upload.parallel, count) }, async () => {
    try {
      while (next < count && !failed.signal.aborted) {
        const number = next++;
        const offset = number * partBytes;
        const bytes = await body.read(offset, Math.min(partBytes, size - offset));
        await attempt((signal) => upload.part(number, offset, bytes, signal));
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
