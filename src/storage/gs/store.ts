import { createHash, randomBytes } from 'node:crypto';
import { StorageError } from '../../core/storage.ts';
import {
  type Condition,
  type Driver,
  type Environment,
  type Facts,
  checkRemoved,
  readNothing,
  totalOf,
} from '../driver.ts';
import type { StorageSettings } from '../fields.ts';
import { GoogleClient } from './client.ts';
import { AnswerError, faultOf } from './fault.ts';
import { generationOf, type Item, itemsOf, type Listed, stored } from './item.ts';
import { remainsOf } from './remains.ts';
import { GoogleUpload } from './upload.ts';

/** Name of the metadata that an object's hash is kept under. */
const SHA256 = 'sha256';
const FIELDS = 'name,size,generation,updated,metadata';

export function openDriver(bucket: string, { gs }: StorageSettings, env: Environment): Driver {
  return new GoogleDriver(new GoogleClient(gs, env), bucket);
}

class GoogleDriver implements Driver {
  readonly noVersion = '1';
  readonly faultOf = faultOf;
  readonly #client: GoogleClient;
  readonly #objects: string;
  readonly #uploads: string;

  constructor(client: GoogleClient, bucket: string) {
    this.#client = client;
    this.#objects = `/storage/v1/b/${encodeURIComponent(bucket)}/o`;
    this.#uploads = `/upload/storage/v1/b/${encodeURIComponent(bucket)}/o`;
  }

  readonly head: Driver['head'] = async (key, signal) => {
    try {
      const item = await this.#client.json<Item>({ path: this.#of(key), query: { fields: FIELDS }, signal });
      return { ...stored(item), sha256: item.metadata?.[SHA256] ?? null };
    } catch (error) {
      return this.#missing(error, signal);
    }
  };

  readonly read: Driver['read'] = async (key, { offset, version }, signal) => {
    const match = version === null ? {} : { ifGenerationMatch: version };
    const range: Record<string, string> = offset === 0 ? {} : { range: `bytes=${offset}-` };
    try {
      const { headers, body } = await this.#client.ask({
        path: this.#of(key),
        query: { alt: 'media', ...match },
        // As it is stored: the service would unpack what was uploaded as gzip.
        headers: { 'accept-encoding': 'gzip', ...range },
        signal,
      });
      const total = totalOf(String(headers['content-range'] ?? '')) ?? headers['content-length'];
      const there = headers['x-goog-generation'];
      if (total === undefined || there === undefined)
        throw new StorageError('unreachable', 'an answer without a length or a generation');
      return { version: String(there), bytes: Number(total), body };
    } catch (error) {
      if (!(error instanceof AnswerError)) throw error;
      if (error.status === 404) await this.#missing(error, signal);
      if (error.status !== 416) throw error;
      return readNothing(this, { key, version }, error, signal);
    }
  };

  readonly page: Driver['page'] = async (prefix, after, signal) => {
    const next = after === null ? {} : { pageToken: after };
    const query = { prefix, fields: 'kind,nextPageToken,items(name,size,generation,updated)', ...next };
    const listed = await this.#client.json<Listed>({ path: this.#objects, query, signal }).catch(noBucket);
    return { objects: itemsOf(listed).map((item) => stored(item)), next: listed.nextPageToken ?? null };
  };

  readonly put: Driver['put'] = async (key, whole, condition, signal) => {
    const boundary = `millrace-${randomBytes(12).toString('hex')}`;
    const head = `--${boundary}\r\ncontent-type: application/json\r\n\r\n${resource(key, whole, { md5Hash: createHash('md5').update(whole.bytes).digest('base64') })}\r\n--${boundary}\r\ncontent-type: application/octet-stream\r\n\r\n`;
    const item = await this.#client
      .json<Item>({
        method: 'POST',
        path: this.#uploads,
        query: { uploadType: 'multipart', ...conditionOf(condition) },
        headers: { 'content-type': `multipart/related; boundary=${boundary}` },
        body: Buffer.concat([Buffer.from(head), whole.bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
        signal,
      })
      .catch(noBucket);
    return generationOf(item);
  };

  readonly upload: Driver['upload'] = async (key, facts, condition, signal) => {
    const { headers, body } = await this.#client
      .ask({
        method: 'POST',
        path: this.#uploads,
        query: { uploadType: 'resumable', ...conditionOf(condition) },
        headers: { 'content-type': 'application/json' },
        body: resource(key, facts),
        // The condition is looked at here already, and again at the end.
        signal,
      })
      .catch(noBucket);
    await body.text();
    const { location } = headers;
    if (location === undefined) throw new StorageError('unreachable', 'an upload without an address');
    return new GoogleUpload(this.#client, String(location), facts.size);
  };

  readonly remove: Driver['remove'] = async (key, version, signal) => {
    const query = version === null ? {} : { ifGenerationMatch: version };
    try {
      const { status, body } = await this.#client.ask({
        method: 'DELETE',
        path: this.#of(key),
        query,
        signal,
      });
      await body.text();
      await checkRemoved(this, { key, version }, status, signal);
    } catch (error) {
      await this.#missing(error, signal);
    }
  };

  readonly remains: Driver['remains'] = (key, signal) => remainsOf(this.#client, this.#objects, key, signal);

  close(): void {
    this.#client.close();
  }

  #of(key: string): string {
    return `${this.#objects}/${encodeURIComponent(key)}`;
  }

  /** Null for an error that says that the object is not there. @throws any other, and when the bucket is not there either */
  async #missing(thrown: unknown, signal: AbortSignal): Promise<null> {
    if (faultOf(thrown).fault !== 'missing') throw thrown;
    await this.#client.json({ path: this.#objects, query: { maxResults: '1' }, signal }).catch(noBucket);
    return null;
  }
}

function conditionOf({ version }: Condition): { ifGenerationMatch: string } {
  return { ifGenerationMatch: version ?? '0' };
}

/** Nothing but the bucket can be missing here. */
function noBucket(error: unknown): never {
  if (error instanceof AnswerError && error.status === 404)
    throw new StorageError('no_place', error.message, { cause: error });
  throw error;
}

/** @param checked what the service compares the content with */
function resource(name: string, { sha256 }: Facts, checked: { md5Hash?: string } = {}): string {
  const metadata = { [SHA256]: sha256 };
  return JSON.stringify({ name, contentType: 'application/octet-stream', metadata, ...checked });
}
