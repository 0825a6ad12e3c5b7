import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeAll } from './durable.ts';

/** More than this lies on the disk. */
const IN_MEMORY = 16 * 2 ** 20;

/** The temporary folder cannot take what is spooled, or does not give it back: that says nothing of the bytes. */
export class SpoolError extends Error {
  override readonly name = 'SpoolError';
}

/**
 * Bytes that came in order, to be read anywhere. Many lie in a temporary file that loses its name at once, so that it is gone with
 * the process, however that ends, and nobody else can open it.
 */
export class SpooledBytes {
  readonly byteLength: number;
  readonly #where: Buffer | FileHandle;

  private constructor(where: Buffer | FileHandle, byteLength: number) {
    this.#where = where;
    this.byteLength = byteLength;
  }

  /** Takes all there is. @throws what the source throws; SpoolError */
  static async of(source: AsyncIterable<Buffer>, inMemory = IN_MEMORY): Promise<SpooledBytes> {
    let held: Buffer[] = [];
    let length = 0;
    let file: FileHandle | null = null;
    try {
      for await (const chunk of source) {
        held.push(chunk);
        length += chunk.length;
        if (file === null && length <= inMemory) continue;
        file ??= await spooling(openNameless());
        const all = Buffer.concat(held);
        await spooling(writeAll(file, all, length - all.length));
        held = [];
      }
      return new SpooledBytes(file ?? Buffer.concat(held), length);
    } catch (error) {
      await file?.close();
      throw error;
    }
  }

  /** A copy. @throws RangeError when it would go beyond the end; SpoolError */
  async slice(from: number, to = this.byteLength): Promise<ArrayBuffer> {
    if (from < 0 || to > this.byteLength || to < from) throw new RangeError(`no bytes ${from} to ${to}`);
    const bytes = new Uint8Array(to - from);
    if (this.#where instanceof Uint8Array) bytes.set(this.#where.subarray(from, to));
    else await spooling(readAll(this.#where, bytes, from));
    return bytes.buffer;
  }

  async close(): Promise<void> {
    if (!(this.#where instanceof Uint8Array)) await this.#where.close();
  }
}

async function spooling<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new SpoolError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

async function openNameless(): Promise<FileHandle> {
  const path = join(tmpdir(), `millrace-${randomBytes(8).toString('hex')}.tmp`);
  const file = await open(path, 'wx+', 0o600);
  await rm(path);
  return file;
}

async function readAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, position + done);
    if (bytesRead === 0) throw new Error('a temporary file has lost its end');
    done += bytesRead;
  }
}
