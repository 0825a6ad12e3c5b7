import { createHash } from 'node:crypto';
import { type FileHandle } from 'node:fs/promises';
import { type ObjectBody, StorageError } from '../core/storage.ts';
import { openPlain, READ } from '../lib/durable.ts';
import type { Facts } from './driver.ts';
import { uploadBuffers } from './upload-buffers.ts';

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

  /**
   * Makes a request with some of the bytes.
   * @param most bytes that are ever asked for at once
   * @param send calls `tried` before each try
   */
  async with<T>(
    { offset, length, most }: { readonly offset: number; readonly length: number; readonly most: number },
    send: (bytes: Buffer, tried: () => void) => Promise<T>,
  ): Promise<T> {
    const body = this.#body;
    if ('bytes' in body) return send(body.bytes.subarray(offset, offset + length), () => undefined);
    const bytes = uploadBuffers.take(length, most);
    await this.#fill(bytes, offset, body.file);
    let tries = 0;
    const result = await send(bytes, () => (tries += 1));
    // A try that has failed may be sending still; one that the store has answered with a version has been read whole.
    if (tries === 1 && result !== null) uploadBuffers.give(bytes);
    return result;
  }

  async #fill(bytes: Buffer, offset: number, file: string): Promise<void> {
    const { length } = bytes;
    for (let done = 0; done < length;) {
      const { bytesRead = 0 } = (await this.#handle?.read(bytes, done, length - done, offset + done)) ?? {};
      if (bytesRead === 0) throw changed(file);
      done += bytesRead;
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}

function changed(file: string): StorageError {
  return new StorageError('invalid', `${file} was changed before it was uploaded`);
}
