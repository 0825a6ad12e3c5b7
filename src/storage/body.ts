import { createHash } from 'node:crypto';
import { type FileHandle } from 'node:fs/promises';
import { type ObjectBody, StorageError } from '../core/storage.ts';
import { openPlain, READ } from '../lib/durable.ts';
import type { Facts } from './driver.ts';

export function factsOf(body: ObjectBody): Facts {
  if ('file' in body) return { size: body.size, sha256: body.sha256 };
  return { size: body.bytes.length, sha256: createHash('sha256').update(body.bytes).digest('hex') };
}

/** What is to be written, piece by piece and as often as needed; close it. */
export class BodyReader {
  readonly #body: ObjectBody;
  readonly #handle: FileHandle | null;

  private constructor(body: ObjectBody, handle: FileHandle | null) {
    this.#body = body;
    this.#handle = handle;
  }

  /** @throws StorageError invalid when a file is not what was said of it */
  static async open(body: ObjectBody): Promise<BodyReader> {
    if ('bytes' in body) return new BodyReader(body, null);
    const handle = await openPlain(body.file, READ);
    const reader = new BodyReader(body, handle);
    const { size } = await handle.stat();
    if (size === body.size) return reader;
    await reader.close();
    throw changed(body.file);
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const body = this.#body;
    if ('bytes' in body) return body.bytes.subarray(offset, offset + length);
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let done = 0; done < length;) {
      const { bytesRead = 0 } = (await this.#handle?.read(bytes, done, length - done, offset + done)) ?? {};
      if (bytesRead === 0) throw changed(body.file);
      done += bytesRead;
    }
    return bytes;
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}

function changed(file: string): StorageError {
  return new StorageError('invalid', `${file} was changed before it was uploaded`);
}
