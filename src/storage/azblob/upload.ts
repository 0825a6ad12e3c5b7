import { randomBytes } from 'node:crypto';
import type { BlockBlobClient } from '@azure/storage-blob';
import { StorageError } from '../../core/storage.ts';
import { type Upload, UploadGone } from '../driver.ts';

interface Finishing {
  readonly conditions: { readonly ifNoneMatch: '*' } | { readonly ifMatch: string };
  readonly metadata: Record<string, string>;
}

/**
 * Blocks that wait to be made a blob. All writers of one key share them, and who is first drops those of the others; their
 * ids begin with something random so that nobody makes a blob of another's blocks. What is never finished the service
 * removes after a week.
 */
export class AzureUpload implements Upload {
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
