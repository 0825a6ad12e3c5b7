import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { StorageError } from '../../core/storage.ts';
import { type Upload, UploadGone } from '../driver.ts';
import type { Answer, GoogleClient } from './client.ts';
import { AnswerError } from './fault.ts';
import { generationOf, type Item } from './item.ts';

/** The service has what came so far, and waits for more. */
const MORE = 308;

/** A resumable upload: parts one after the other; the last one makes the object. Ends by itself after a week. */
export class GoogleUpload implements Upload {
  readonly parallel = 1;
  readonly #client: GoogleClient;
  /** Path and query of the upload's own address. */
  readonly #path: string;
  readonly #size: number;
  /** Of all parts so far: what the service has made of them is compared with it. */
  readonly #md5 = createHash('md5');
  #parts = 0;
  /** Whether an answer was lost, so that nobody knows how far the service has come. */
  #isUnsure = false;
  /** The version of the object, once it is made. */
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
    // What came before this part is in memory no more.
    if (from < offset) throw new UploadGone(null);
    while (this.#made === null && from < end)
      from = await this.#send(
        bytes.subarray(from - offset),
        `bytes ${from}-${end - 1}/${this.#size}`,
        signal,
      );
  }

  finish(): Promise<string> {
    // It has all bytes and names no object, as some say of one that is made: whether it is there is looked at, at once.
    if (this.#made === null) return Promise.reject(new UploadGone(null));
    return Promise.resolve(this.#made);
  }

  async abandon(signal: AbortSignal): Promise<void> {
    // 499 is what the service says to that.
    const { body } = await this.#client.ask({
      method: 'DELETE',
      path: this.#path,
      fine: [404, 410, 499],
      signal,
    });
    await body.text();
  }

  /** @returns how many bytes the service has */
  async #send(body: Buffer, range: string, signal: AbortSignal): Promise<number> {
    if (this.#made !== null) return this.#size;
    this.#isUnsure = true;
    try {
      const headers = { 'content-range': range };
      const answer = await this.#client.ask({
        method: 'PUT',
        path: this.#path,
        headers,
        body,
        fine: [MORE],
        signal,
      });
      const reached = await this.#reached(answer);
      this.#isUnsure = false;
      return reached;
    } catch (error) {
      const isGone = error instanceof AnswerError && [404, 410].includes(error.status);
      throw isGone ? new UploadGone(error) : error;
    }
  }

  async #reached({ status, headers, body }: Answer): Promise<number> {
    const text = (await buffer(body)).toString();
    if (status !== MORE) {
      const item = JSON.parse(text) as Item;
      // Composite objects have none; this is not one.
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

/** At the address that the service is reached by, which may be another than it knows of itself. */
function pathOf(location: string): string {
  const { pathname, search } = new URL(location);
  return `${pathname}${search}`;
}
