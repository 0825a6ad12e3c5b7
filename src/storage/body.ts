import { hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { type ObjectBody, StorageError } from '../core/storage.ts';
import { openPlain, READ } from '../lib/durable.ts';
import { mapAtMost } from '../lib/map-at-most.ts';
import type { BodyFacts, Upload } from './driver.ts';

export function factsOf(body: ObjectBody): BodyFacts {
  if ('file' in body) return { size: body.size, sha256: body.sha256 };
  return { size: body.bytes.length, sha256: hash('sha256', body.bytes, 'hex') };
}

/** A range of a body. */
export interface BodyRange {
  readonly offset: number;
  readonly length: number;
  /** Length of the longest range that is asked for. */
  readonly most: number;
}

/** Reads ranges of a body, as often as needed. */
export class BodyReader implements AsyncDisposable {
  readonly #body: ObjectBody;
  readonly #handle: FileHandle | null;

  private constructor(body: ObjectBody, handle: FileHandle | null) {
    this.#body = body;
    this.#handle = handle;
  }

  /** @throws StorageError invalid when a file does not have its size */
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

  /** The result of `send`, which makes requests with the bytes of a range by `attempt`. */
  async with<T>(
    { offset, length, most }: BodyRange,
    attempt: Attempt,
    send: (bytes: Buffer, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const body = this.#body;
    if ('bytes' in body) {
      const bytes = body.bytes.subarray(offset, offset + length);
      return attempt((signal) => send(bytes, signal));
    }
    const bytes = uploadBuffers.take(length, most);
    await this.#fill(bytes, offset, body.file);
    let tries = 0;
    const result = await attempt((signal) => {
      tries += 1;
      return send(bytes, signal);
    });
    // A failed try may still read from the buffer.
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
  }
}

function changed(file: string): StorageError {
  return new StorageError('invalid', `${file} was changed before it was uploaded`);
}

/** Buffers below this many bytes are not kept: a new one costs little. */
const SMALL = 1024 * 1024;
/** Bytes of all buffers that are kept. */
const KEPT = 32 * 1024 * 1024;
/** Milliseconds after which all are released. */
const IDLE_MS = 10_000;

/** Buffers for uploads, used again: each new one of this size makes the garbage collector scan the whole heap. */
class UploadBuffers {
  #free: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** A buffer with any content. @param most bytes of the largest that is asked for */
  take(bytes: number, most: number): Buffer {
    if (bytes < SMALL) return Buffer.allocUnsafeSlow(bytes);
    const at = this.#free.findIndex(({ length }) => length >= bytes);
    const [whole = Buffer.allocUnsafeSlow(Math.max(bytes, most))] = at === -1 ? [] : this.#free.splice(at, 1);
    return whole.subarray(0, bytes);
  }

  /** @param buffer as taken; no request may read from it any more */
  give(buffer: Buffer): void {
    const whole = Buffer.from(buffer.buffer);
    const kept = this.#free.reduce((sum, { length }) => sum + length, 0);
    if (buffer.length < SMALL || kept + whole.length > KEPT) return;
    this.#free.push(whole);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.#free = []), IDLE_MS).unref();
  }
}

/** Of all stores of this process. */
const uploadBuffers = new UploadBuffers();

/** Makes a request, again while its failure is transient. */
export type Attempt = <T>(request: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Bytes of one body in memory at most; one part may be larger. */
const IN_MEMORY = 32 * 1024 * 1024;

/** Uploads a body in parts, as many at once as the store accepts and memory allows. @returns the version */
export async function writeParts(
  upload: Upload,
  body: BodyReader,
  { size, partBytes, attempt }: { size: number; partBytes: number; attempt: Attempt },
): Promise<string> {
  const offsets = Array.from({ length: Math.ceil(size / partBytes) }, (_, number) => number * partBytes);
  const inMemory = Math.max(1, Math.floor(IN_MEMORY / partBytes));
  // After a failure it waits for the parts in flight: one that arrives after the removal would stay.
  await mapAtMost(Math.min(upload.parallel, inMemory), offsets, (offset, number) => {
    const range = { offset, length: Math.min(partBytes, size - offset), most: partBytes };
    return body.with(range, attempt, (bytes, signal) => upload.part(number, offset, bytes, signal));
  });
  return attempt((signal) => upload.finish(signal));
}
