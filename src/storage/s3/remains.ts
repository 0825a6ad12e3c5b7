import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectVersionsCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import type { Remains } from '../driver.ts';
import { faultOf, hasMore } from './fault.ts';

export interface S3Object {
  readonly Bucket: string;
  readonly Key: string;
}

/** Old versions and delete markers of a key, and parts of uploads that were never finished. */
export async function remainsOf(client: S3Client, object: S3Object, signal: AbortSignal): Promise<Remains[]> {
  return [...(await uploadsOf(client, object, signal)), ...(await versionsOf(client, object, signal))];
}

async function versionsOf(
  client: S3Client,
  { Bucket, Key }: S3Object,
  abortSignal: AbortSignal,
): Promise<Remains[]> {
  const versions: Remains[] = [];
  const markers: Remains[] = [];
  for (let from = {}; ;) {
    const command = new ListObjectVersionsCommand({ Bucket, Prefix: Key, ...from });
    const page = await client.send(command, { abortSignal });
    const { Versions = [], DeleteMarkers = [], NextKeyMarker, NextVersionIdMarker } = page;
    const remaining = (VersionId: string | undefined, at: Date | undefined): Remains => ({
      name: `version ${VersionId} of ${at?.toISOString() ?? 'an unknown time'}`,
      remove: async (signal) => {
        await client.send(new DeleteObjectCommand({ Bucket, Key, VersionId }), { abortSignal: signal });
      },
    });
    for (const { Key: key, VersionId, IsLatest, LastModified } of Versions)
      if (key === Key && IsLatest !== true) versions.push(remaining(VersionId, LastModified));
    for (const { Key: key, VersionId, LastModified } of DeleteMarkers)
      if (key === Key) markers.push({ ...remaining(VersionId, LastModified), isMarker: true });
    // Keys come in order; the later ones only begin with this key.
    const isPast = [...Versions, ...DeleteMarkers].some(({ Key: key = '' }) => key !== Key);
    // Markers last: without them an old version would be the present one again.
    if (!hasMore(page, NextKeyMarker) || isPast) return [...versions, ...markers];
    from = { KeyMarker: NextKeyMarker, VersionIdMarker: NextVersionIdMarker };
  }
}

async function uploadsOf(
  client: S3Client,
  { Bucket, Key }: S3Object,
  abortSignal: AbortSignal,
): Promise<Remains[]> {
  const part = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }), { abortSignal });
  hasMore(part, part.NextKeyMarker);
  const { Uploads = [] } = part;
  return Uploads.filter((upload) => upload.Key === Key).map(({ UploadId, Initiated }) => ({
    name: `parts of an upload begun at ${Initiated?.toISOString() ?? 'an unknown time'}`,
    remove: async (signal) => {
      try {
        const command = new AbortMultipartUploadCommand({ Bucket, Key, UploadId });
        await client.send(command, { abortSignal: signal });
      } catch (error) {
        if (faultOf(error).fault !== 'missing') throw error;
      }
    },
  }));
}
