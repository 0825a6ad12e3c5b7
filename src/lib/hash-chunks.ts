import { createHash } from 'node:crypto';

/** Number of bytes, and their SHA-256 in lower-case hex. @throws what the chunks throw; the signal's reason */
export async function hashChunks(
  chunks: AsyncIterable<Buffer>,
  signal?: AbortSignal,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}
