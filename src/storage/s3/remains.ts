import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectVersionsCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import type { Remains } from '../driver.ts';
import { faultOf, goesOn } from './fault.ts';

interface Target {
  readonly Bucket: string;
  readonly Key: string;
}

/** Old versions and delete markers of a key, and parts of uploads that never became an object. */
export async function remainsOf(client: S3Client, target: Target, signal: AbortSignal): Promise<Remains[]> {
  return [...(await uploadsOf(client, target, signal)), ...(await versionsOf(client, target, signal))];
}

async function versionsOf(
  client: S3Client,
  { Bucket, Key }: Target,
  signal: AbortSignal,
): Promise<Remains[]> {
  const versions: Remains[] = [];
  const markers: Remains[] = [];
  for (let from = {}; ;) {
    const page = await client.send(new ListObjectVersionsCommand({ Bucket, Prefix: Key, ...from }), {
      abortSignal: signal,
    });
    const { Versions = [], DeleteMarkers = [], NextKeyMarker, NextVersionIdMarker } = page;
    const remaining = (VersionId: string | undefined, at: Date | undefined): Remains => ({
      name: `version ${VersionId} of ${at?.toISOString() ?? 'an unknown time'}`,
      remove: async (abortSignal) => {
        await client.send(new DeleteObjectCommand({ Bucket, Key, VersionId }), { abortSignal });
      },
    });
    for (const { Key: key, VersionId, IsLatest, LastModified } of Versions)
      if (key === Key && IsLatest !== true) versions.push(remaining(VersionId, LastModified));
    for (const { Key: key, VersionId, LastModified } of DeleteMarkers)
      if (key === Key) markers.push({ ...remaining(VersionId, LastModified), isMarker: true });
    // Keys come in order; those after it only begin like it.
    const isPast = [...Versions, ...DeleteMarkers].some(({ Key: key = '' }) => key !== Key);
    // Last the marker that hides them: without it an old version would be the present state again.
    if (!goesOn(page, NextKeyMarker) || isPast) return [...versions, ...markers];
    from = { KeyMarker: NextKeyMarker, VersionIdMarker: NextVersionIdMarker };
  }
}

async function uploadsOf(client: S3Client, { Bucket, Key }: Target, signal: AbortSignal): Promise<Remains[]> {
  const part = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: Key }), {
    abortSignal: signal,
  });
  goesOn(part, part.NextKeyMarker);
  const { Uploads = [] } = part;
  return Uploads.filter((upload) => upload.Key === Key).map(({ UploadId, Initiated }) => ({
    name: `parts of an upload begun at ${Initiated?.toISOString() ?? 'an unknown time'}`,
    remove: async (abortSignal) => {
      try {
        await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }), { abortSignal });
      } catch (error) {
        if (faultOf(error).fault !== 'missing') throw error;
      }
    },
  }));
}
