import type { BlobGetPropertiesResponse, BlockBlobClient, ContainerClient } from '@azure/storage-blob';
import { randomBytes } from 'node:crypto';
import type { StoredObject } from '../../core/storage.ts';
import {
  type Condition,
  type Driver,
  type Environment,
  objectOf,
  readNothing,
  required,
  SHA256,
  totalOf,
  type Upload,
  UploadGone,
} from '../driver.ts';
import type { StorageSettings } from '../fields.ts';
import { clientOf } from './client.ts';
import { faultOf } from './fault.ts';
import { remainsOf } from './remains.ts';

export async function openDriver(
  container: string,
  { azblob }: StorageSettings,
  env: Environment,
): Promise<Driver> {
  return new AzureDriver(await clientOf(container, azblob, env));
}

class AzureDriver implements Driver {
  readonly noVersion = '"0x000000000000000"';
  readonly faultOf = faultOf;
  readonly #container: ContainerClient;

  constructor(container: ContainerClient) {
    this.#container = container;
  }

  readonly head: Driver['head'] = async (key, abortSignal) => {
    try {
      const properties = await this.#container.getBlobClient(key).getProperties({ abortSignal });
      return { ...stored(key, properties), sha256: properties.metadata?.[SHA256] ?? null };
    } catch (error) {
      // A missing container has another code, in a header of the answer.
      if (faultOf(error).fault === 'missing') return null;
      throw error;
    }
  };

  readonly read: Driver['read'] = async (key, { offset, version }, abortSignal) => {
    const conditions = version === null ? {} : { ifMatch: version };
    try {
      const answer = await this.#container
        .getBlobClient(key)
        .download(offset, undefined, { abortSignal, conditions, maxRetryRequests: 0 });
      const { contentRange, contentLength, etag, readableStreamBody } = answer;
      const body = required(readableStreamBody, 'a body') as unknown as AsyncIterable<Uint8Array>;
      const bytes = required(totalOf(contentRange) ?? contentLength, 'a length');
      return { version: versionOf(etag), bytes, body };
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode !== 416) throw error;
      return readNothing(this, { key, version }, error, abortSignal);
    }
  };

  readonly page: Driver['page'] = async (prefix, after, abortSignal) => {
    const pages = this.#container
      .listBlobsFlat({ prefix, abortSignal })
      .byPage(after === null ? {} : { continuationToken: after });
    for await (const { segment, continuationToken } of pages) {
      const objects = segment.blobItems.map(({ name, properties }) => stored(name, properties));
      return { objects, next: continuationToken || null };
    }
    return { objects: [], next: null };
  };

  readonly put: Driver['put'] = async (key, whole, condition, abortSignal) => {
    const { etag } = await this.#container.getBlockBlobClient(key).upload(whole.bytes, whole.size, {
      abortSignal,
      conditions: conditionsOf(condition),
      metadata: { [SHA256]: whole.sha256 },
    });
    return versionOf(etag);
  };

  readonly upload: Driver['upload'] = async (key, { sha256 }, condition) =>
    uploadTo(this.#container.getBlockBlobClient(key), conditionsOf(condition), { [SHA256]: sha256 });

  readonly remove: Driver['remove'] = async (key, version, abortSignal) => {
    await this.#container.getBlobClient(key).delete({
      abortSignal,
      // A blob with snapshots cannot be removed without them.
      deleteSnapshots: 'include',
      conditions: version === null ? {} : { ifMatch: version },
    });
  };

  readonly remains: Driver['remains'] = (key, signal) => remainsOf(this.#container, key, signal);

  close(): void {
    // Its connections are Node's own.
  }
}

function conditionsOf({ version }: Condition): { ifNoneMatch: '*' } | { ifMatch: string } {
  return version === null ? { ifNoneMatch: '*' } : { ifMatch: version };
}

type Properties = Pick<BlobGetPropertiesResponse, 'contentLength' | 'etag' | 'lastModified'>;

function stored(key: string, { contentLength, etag, lastModified }: Properties): StoredObject {
  return objectOf(key, contentLength, versionOf(etag), lastModified);
}

/** With quotes, as in a header; a listing has none. */
function versionOf(etag: string | undefined): string {
  const version = required(etag, 'an ETag');
  return version.startsWith('"') ? version : `"${version}"`;
}

/**
 * An upload of blocks. All writers of one key share its blocks, and the first to finish drops those of the others. The ids begin with a
 * random text, so that no writer commits another's blocks. The service removes uncommitted blocks after a week.
 */
function uploadTo(
  blob: BlockBlobClient,
  conditions: ReturnType<typeof conditionsOf>,
  metadata: Record<string, string>,
): Upload {
  const writer = randomBytes(12).toString('hex');
  const ids: string[] = [];
  return {
    parallel: 4,
    async part(number, _offset, bytes, abortSignal) {
      // All ids of a blob must be equally long.
      const id = Buffer.from(`${writer}-${String(number).padStart(6, '0')}`).toString('base64');
      await blob.stageBlock(id, bytes, bytes.length, { abortSignal });
      ids[number] = id;
    },
    async finish(abortSignal) {
      try {
        const { etag } = await blob.commitBlockList(ids, { abortSignal, conditions, metadata });
        return required(etag, 'an ETag');
      } catch (error) {
        if ((error as { code?: string }).code === 'InvalidBlockList') throw new UploadGone(error);
        throw error;
      }
    },
    // Blocks cannot be removed one by one; a commit of none would make an empty blob for a moment.
    abandon: () => Promise.resolve(),
  };
}
