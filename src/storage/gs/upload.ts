import { createHash } from 'node:crypto';
import { StorageError } from '../../core/storage.ts';
import { type Upload, UploadGone } from '../driver.ts';
import type { GoogleAnswer, GoogleClient } from './client.ts';
import { AnswerError } from './fault.ts';
import { generationOf, type Item } from './item.ts';

/** Status of an answer that waits for more bytes. */
const MORE = 308;

/** A resumable upload: parts one after the other, of which the last makes the object. The service ends it after a week. */
export class GoogleUpload implements Upload {
  readonly parallel = 1;
  readonly #client: GoogleClient;
  /** Path and query of the upload's address. */
  readonly #path: string;
  readonly #size: number;
  /** Of all parts so far, to compare with the service's hash. */
  readonly #md5 = createHash('md5');
  #parts = 0;
  /** True while it is unknown how many bytes the service has. */
  #isUnsure = false;
  /** Version of the object, once it is made. */
  #made: string | null = null;

  constructor(client: GoogleClient, location: string, size: number) {
    this.#client = client;
    this.#size = size;
    this.#path = pathOf(location);
  }

  async part(number: number, offset: number, bytes: Buffer, signal: AbortSignal): Promise<void> {
    if (number === this.#parts) {
      this.#md5.update(bytes);
      this.#parts += 1;
    }
    const end = offset + bytes.length;
    let from = offset;
    if (this.#isUnsure) from = await this.#send(Buffer.alloc(0), `bytes */${this.#size}`, signal);
    // The earlier parts are no longer in memory.
    if (from < offset) throw new UploadGone(null);
    while (this.#made === null && from < end) {
      const range = `bytes ${from}-${end - 1}/${this.#size}`;
      from = await this.#send(bytes.subarray(from - offset), range, signal);
    }
  }

  finish(): Promise<string> {
    // Some stand-ins wait for more bytes although they have made the object; the caller checks whether it is there.
    return this.#made === null ? Promise.reject(new UploadGone(null)) : Promise.resolve(this.#made);
  }

  async abandon(signal: AbortSignal): Promise<void> {
    // The service answers 499.
    await this.#client.ask({ method: 'DELETE', path: this.#path, fine: [404, 410, 499], signal });
  }

  /** @returns how many bytes the service has */
  async #send(body: Buffer, range: string, signal: AbortSignal): Promise<number> {
    if (this.#made !== null) return this.#size;
    this.#isUnsure = true;
    try {
      const headers = { 'content-range': range };
      const request = { method: 'PUT', path: this.#path, headers, body, fine: [MORE], signal } as const;
      const reached = this.#reached(await this.#client.ask(request));
      this.#isUnsure = false;
      return reached;
    } catch (error) {
      const isGone = error instanceof AnswerError && [404, 410].includes(error.status);
      throw isGone ? new UploadGone(error) : error;
    }
  }

  #reached({ status, headers, body }: GoogleAnswer<string>): number {
    if (status !== MORE) {
      const item = JSON.parse(body) as Item;
      // Stand-ins may have no hash.
      const isSame = item.md5Hash === undefined || item.md5Hash === this.#md5.copy().digest('base64');
      if (Number(item.size) !== this.#size || !isSame)
        throw new StorageError('invalid', 'the store has made another object of the upload than was sent');
      this.#made = generationOf(item);
      return this.#size;
    }
    const range = /-(\d+)$/.exec(String(headers['range'] ?? ''))?.[1];
    return range === undefined ? 0 : Number(range) + 1;
  }
}

/** Without the host: the service may be reached at another address than it knows. */
function pathOf(location: string): string {
  const { pathname, search } = new URL(location);
  return `${pathname}${search}`;
}
