import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { type ObjectBody, StorageError } from '../core/storage.ts';
import { openPlain, READ } from '../lib/durable.ts';
import { mapAtMost } from '../lib/map-at-most.ts';
import type { Facts, Upload } from './driver.ts';

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
    try {
      if ((await handle.stat()).size !== body.size) throw changed(body.file);
      return new BodyReader(body, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
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
    // A try that has failed may be sending still; one that the store has taken has been read whole.
    if (tries === 1) uploadBuffers.give(bytes);
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

/** Bytes below which a new buffer costs nothing to speak of. */
const SMALL = 1024 * 1024;
/** Bytes of all that are kept. */
const KEPT = 32 * 1024 * 1024;
/** Milliseconds after which nothing is kept any more. */
const IDLE = 10_000;

/**
 * Buffers for uploads, used again: each new one of this size makes the garbage collector go through everything there is.
 *
 * Only one that no request can still be sending from may be given back: an attempt that has timed out may be.
 */
class UploadBuffers {
  #free: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** So many bytes with anything in them. @param most bytes of the largest that is asked for */
  take(bytes: number, most: number): Buffer {
    if (bytes < SMALL) return Buffer.allocUnsafeSlow(bytes);
    const at = this.#free.findIndex(({ length }) => length >= bytes);
    const [whole = Buffer.allocUnsafeSlow(Math.max(bytes, most))] = at === -1 ? [] : this.#free.splice(at, 1);
    return whole.subarray(0, bytes);
  }

  /** @param buffer as it was taken */
  give(buffer: Buffer): void {
    const whole = Buffer.from(buffer.buffer);
    const kept = this.#free.reduce((sum, { length }) => sum + length, 0);
    if (buffer.length < SMALL || kept + whole.length > KEPT) return;
    this.#free.push(whole);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.#free = []), IDLE).unref();
  }
}

/** Of all stores of this process. */
const uploadBuffers = new UploadBuffers();

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
  const offsets = Array.from({ length: Math.ceil(size / partBytes) }, (_, number) => number * partBytes);
  const fitting = Math.max(1, Math.floor(IN_MEMORY / partBytes));
  // Waits for those that are on their way when one fails: a part that arrives after the removal would stay.
  await mapAtMost(Math.min(upload.parallel, fitting), offsets, (offset, number) => {
    const part = { offset, length: Math.min(partBytes, size - offset), most: partBytes };
    return body.with(part, (bytes, tried) =>
      attempt((signal) => {
        tried();
        return upload.part(number, offset, bytes, signal);
      }),
    );
  });
  return attempt((signal) => upload.finish(signal));
}
