import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { StorageError } from '../../core/storage.ts';
import { required, type Upload, UploadGone } from '../driver.ts';
import type { S3Object } from './remains.ts';

/** The condition of an upload's last request. */
interface UploadCondition {
  readonly headers: { readonly IfNoneMatch: '*' } | { readonly IfMatch: string };
  /** Whether it seems to hold: not all stores check it when an upload is finished. */
  seemsToHold(signal: AbortSignal): Promise<boolean>;
}

export async function beginUpload(
  client: S3Client,
  object: S3Object,
  Metadata: Record<string, string>,
  { headers, seemsToHold }: UploadCondition,
  signal: AbortSignal,
): Promise<Upload> {
  const begin = new CreateMultipartUploadCommand({ ...object, Metadata });
  const { UploadId } = await client.send(begin, { abortSignal: signal });
  const upload = { ...object, UploadId: required(UploadId, 'an upload id') };
  const etags: string[] = [];
  return {
    parallel: 4,
    async part(number, _offset, bytes, abortSignal) {
      const part = { PartNumber: number + 1, Body: bytes, ContentLength: bytes.length };
      const command = new UploadPartCommand({ ...upload, ...part });
      const { ETag } = await client.send(command, { abortSignal }).catch(throwIfGone);
      etags[number] = required(ETag, 'an ETag');
    },
    async finish(abortSignal) {
      if (!(await seemsToHold(abortSignal)))
        throw new StorageError('changed', 'was replaced while it was uploaded');
      const Parts = etags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
      const command = new CompleteMultipartUploadCommand({
        ...upload,
        MultipartUpload: { Parts },
        ...headers,
      });
      const { ETag } = await client.send(command, { abortSignal }).catch(throwIfGone);
      return required(ETag, 'an ETag');
    },
    async abandon(abortSignal) {
      await client.send(new AbortMultipartUploadCommand(upload), { abortSignal });
    },
  };
}

function throwIfGone(error: unknown): never {
  // After a conflict with another writer the upload cannot be finished.
  if (['NoSuchUpload', 'ConditionalRequestConflict'].includes((error as Error).name))
    throw new UploadGone(error);
  throw error;
}
