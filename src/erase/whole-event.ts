import { fileChunks } from '../archive/file-lines.ts';

/** Larger files are no single event, whatever their names say. */
const LARGEST_EVENT = 256 * 2 ** 20;

/** The bytes of one kept event, decompressed. */
export async function wholeEvent(path: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of fileChunks(path)) {
    size += chunk.length;
    if (size > LARGEST_EVENT) throw new Error(`more than ${LARGEST_EVENT} bytes are no single event`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
