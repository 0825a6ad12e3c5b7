import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { StorageError } from '../../core/storage.ts';
import { type Upload, UploadGone } from '../driver.ts';

interface Target {
  readonly Bucket: string;
  readonly Key: string;
}

interface Finishing {
  readonly conditions: { readonly IfNoneMatch: '*' } | { readonly IfMatch: string };
  /** Whether the condition holds as far as can be seen: not all stores look at it when an upload is finished. */
  seemsToHold(signal: AbortSignal): Promise<boolean>;
}

export class S3Upload implements Upload {
  readonly parallel = 4;
  readonly #client: S3Client;
  readonly #of: Target & { readonly UploadId: string };
  readonly #finishing: Finishing;
  readonly #etags: string[] = [];

  private constructor(client: S3Client, of: Target & { UploadId: string }, finishing: Finishing) {
    this.#client = client;
    this.#of = of;
    this.#finishing = finishing;
  }

  static async begin(
    client: S3Client,
    { Metadata, ...target }: Target & { Metadata: Record<string, string> },
    finishing: Finishing,
    abortSignal: AbortSignal,
  ): Promise<S3Upload> {
    const command = new CreateMultipartUploadCommand({ ...target, Metadata });
    const { UploadId } = await client.send(command, { abortSignal });
    if (UploadId === undefined) throw new StorageError('unreachable', 'an upload without an id');
    return new S3Upload(client, { ...target, UploadId }, finishing);
  }

  async part(number: number, _offset: number, bytes: Buffer, abortSignal: AbortSignal): Promise<void> {
    const part = { PartNumber: number + 1, Body: bytes, ContentLength: bytes.length };
    const { ETag } = await this.#sent(
      this.#client.send(new UploadPartCommand({ ...this.#of, ...part }), { abortSignal }),
    );
    if (ETag === undefined) throw new StorageError('unreachable', 'an answer without an ETag');
    this.#etags[number] = ETag;
  }

  async finish(abortSignal: AbortSignal): Promise<string> {
    if (!(await this.#finishing.seemsToHold(abortSignal)))
      throw new StorageError('changed', 'was replaced while it was uploaded');
    const Parts = this.#etags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
    const command = new CompleteMultipartUploadCommand({
      ...this.#of,
      MultipartUpload: { Parts },
      ...this.#finishing.conditions,
    });
    const { ETag } = await this.#sent(this.#client.send(command, { abortSignal }));
    if (ETag === undefined) throw new StorageError('unreachable', 'an answer without an ETag');
    return ETag;
  }

  async abandon(abortSignal: AbortSignal): Promise<void> {
    await this.#client.send(new AbortMultipartUploadCommand(this.#of), { abortSignal });
  }

  async #sent<T>(request: Promise<T>): Promise<T> {
    try {
      return await request;
    } catch (error) {
      // After a conflict with another writer the upload cannot be finished any more.
      if (['NoSuchUpload', 'ConditionalRequestConflict'].includes((error as Error).name))
        throw new UploadGone(error);
      throw error;
    }
  }
}
