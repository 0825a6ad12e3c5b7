import type { ContainerClient, BlockBlobClient } from '@azure/storage-blob';
import { StorageError } from '../../core/storage.ts';
import {
  type Condition,
  type Driver,
  type Environment,
  type Upload,
  readNothing,
  totalOf,
  UploadGone,
} from '../driver.ts';
import type { StorageSettings } from '../fields.ts';
import { clientOf } from './client.ts';
import { faultOf } from './fault.ts';
import { remainsOf } from './remains.ts';
import { randomBytes } from 'node:crypto';

/** Name of the metadata that a blob's hash is kept under. */
const SHA256 = 'sha256';

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
      const said = await this.#container.getBlobClient(key).getProperties({ abortSignal });
      return { ...stored(key, said), sha256: said.metadata?.[SHA256] ?? null };
    } catch (error) {
      // The code of the error stands in a header, so that a container that is not there is told apart.
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
      const { contentRange, contentLength = 0, etag, readableStreamBody } = answer;
      if (readableStreamBody === undefined) throw new StorageError('unreachable', 'an answer without a body');
      const body = readableStreamBody as unknown as AsyncIterable<Uint8Array>;
      return { version: versionOf(etag), bytes: totalOf(contentRange) ?? contentLength, body };
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

  readonly upload: Driver['upload'] = (key, { sha256 }, condition) => {
    const upload = new AzureUpload(this.#container.getBlockBlobClient(key), {
      conditions: conditionsOf(condition),
      metadata: { [SHA256]: sha256 },
    });
    return Promise.resolve(upload);
  };

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

interface Said {
  readonly contentLength?: number | undefined;
  readonly etag?: string | undefined;
  readonly lastModified?: Date | undefined;
}

function stored(key: string, { contentLength, etag, lastModified }: Said) {
  const modifiedAt = lastModified?.getTime() ?? 0;
  return { key, bytes: contentLength ?? 0, version: versionOf(etag), modifiedAt };
}

/** A listing gives it without the quotes that a header has. */
function versionOf(etag: string | undefined): string {
  if (etag === undefined || etag === '') throw new StorageError('unreachable', 'an answer without an ETag');
  return etag.startsWith('"') ? etag : `"${etag}"`;
}

interface Finishing {
  readonly conditions: { readonly ifNoneMatch: '*' } | { readonly ifMatch: string };
  readonly metadata: Record<string, string>;
}

/**
 * Blocks that wait to be made a blob. All writers of one key share them, and who is first drops those of the others; their
 * ids begin with something random so that nobody makes a blob of another's blocks. What is never finished the service
 * removes after a week.
 */
class AzureUpload implements Upload {
  readonly parallel = 4;
  readonly #blob: BlockBlobClient;
  readonly #finishing: Finishing;
  readonly #writer = randomBytes(12).toString('hex');
  readonly #ids: string[] = [];

  constructor(blob: BlockBlobClient, finishing: Finishing) {
    this.#blob = blob;
    this.#finishing = finishing;
  }

  async part(number: number, _offset: number, bytes: Buffer, abortSignal: AbortSignal): Promise<void> {
    // All ids of a blob must be equally long.
    const id = Buffer.from(`${this.#writer}-${String(number).padStart(6, '0')}`).toString('base64');
    await this.#blob.stageBlock(id, bytes, bytes.length, { abortSignal });
    this.#ids[number] = id;
  }

  async finish(abortSignal: AbortSignal): Promise<string> {
    const { conditions, metadata } = this.#finishing;
    try {
      const { etag } = await this.#blob.commitBlockList(this.#ids, { abortSignal, conditions, metadata });
      if (etag === undefined) throw new StorageError('unreachable', 'an answer without an ETag');
      return etag;
    } catch (error) {
      if ((error as { code?: string }).code === 'InvalidBlockList') throw new UploadGone(error);
      throw error;
    }
  }

  /** Blocks cannot be removed one by one; a commit of none would make an empty blob for a moment. */
  abandon(): Promise<void> {
    return Promise.resolve();
  }
}
