import { hash, randomBytes } from 'node:crypto';
import { StorageError } from '../../core/storage.ts';
import {
  type BodyFacts,
  checkRemoved,
  type Condition,
  type Driver,
  type Environment,
  readNothing,
  required,
  SHA256,
  totalOf,
} from '../driver.ts';
import type { StorageSettings } from '../fields.ts';
import { GoogleClient } from './client.ts';
import { AnswerError, faultOf } from './fault.ts';
import { generationOf, type Item, itemsOf, type Listed, stored } from './item.ts';
import { remainsOf } from './remains.ts';
import { GoogleUpload } from './upload.ts';

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
      const { headers, body } = await this.#client.open({
        path: this.#of(key),
        query: { alt: 'media', ...match },
        // Otherwise the service would decompress an object that was uploaded as gzip.
        headers: { 'accept-encoding': 'gzip', ...range },
        signal,
      });
      const total = totalOf(String(headers['content-range'] ?? '')) ?? headers['content-length'];
      const generation = required(headers['x-goog-generation'], 'a generation');
      return { version: String(generation), bytes: Number(required(total, 'a length')), body };
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
    const listed = await this.#client
      .json<Listed>({ path: this.#objects, query, signal })
      .catch(throwNoPlace);
    return { objects: itemsOf(listed).map((item) => stored(item)), next: listed.nextPageToken ?? null };
  };

  readonly put: Driver['put'] = async (key, whole, condition, signal) => {
    const boundary = `millrace-${randomBytes(12).toString('hex')}`;
    const object = resource(key, whole, { md5Hash: hash('md5', whole.bytes, 'base64') });
    const part = (type: string): string => `--${boundary}\r\ncontent-type: ${type}\r\n\r\n`;
    const head = `${part('application/json')}${object}\r\n${part('application/octet-stream')}`;
    const request = this.#client.json<Item>({
      method: 'POST',
      path: this.#uploads,
      query: { uploadType: 'multipart', ...conditionOf(condition) },
      headers: { 'content-type': `multipart/related; boundary=${boundary}` },
      body: Buffer.concat([Buffer.from(head), whole.bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
      signal,
    });
    return generationOf(await request.catch(throwNoPlace));
  };

  readonly upload: Driver['upload'] = async (key, facts, condition, signal) => {
    const request = this.#client.ask({
      method: 'POST',
      path: this.#uploads,
      // The service checks the condition now, and again at the end.
      query: { uploadType: 'resumable', ...conditionOf(condition) },
      headers: { 'content-type': 'application/json' },
      body: resource(key, facts),
      signal,
    });
    const { headers } = await request.catch(throwNoPlace);
    return new GoogleUpload(this.#client, String(required(headers['location'], 'an address')), facts.size);
  };

  readonly remove: Driver['remove'] = async (key, version, signal) => {
    const query = version === null ? {} : { ifGenerationMatch: version };
    try {
      const { status } = await this.#client.ask({ method: 'DELETE', path: this.#of(key), query, signal });
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

  /** Null when the object of a request is not there. @throws any other error, and `no_place` when the bucket is not there either */
  async #missing(thrown: unknown, signal: AbortSignal): Promise<null> {
    if (faultOf(thrown).fault !== 'missing') throw thrown;
    await this.#client.json({ path: this.#objects, query: { maxResults: '1' }, signal }).catch(throwNoPlace);
    return null;
  }
}

function conditionOf({ version }: Condition): { ifGenerationMatch: string } {
  return { ifGenerationMatch: version ?? '0' };
}

/** For requests in which only the bucket can be missing. */
function throwNoPlace(error: unknown): never {
  if (error instanceof AnswerError && error.status === 404)
    throw new StorageError('no_place', error.message, { cause: error });
  throw error;
}

/** @param checked hash that the service compares with the content */
function resource(name: string, { sha256 }: BodyFacts, checked: { md5Hash?: string } = {}): string {
  const metadata = { [SHA256]: sha256 };
  return JSON.stringify({ name, contentType: 'application/octet-stream', metadata, ...checked });
}
