import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { StorageError } from '../../core/storage.ts';
import {
  checkRemoved,
  type Condition,
  type Driver,
  objectOf,
  readNothing,
  required,
  SHA256,
  totalOf,
} from '../driver.ts';
import type { StorageSettings } from '../fields.ts';
import { faultOf, hasMore } from './fault.ts';
import { remainsOf, type S3Object } from './remains.ts';
import { beginUpload } from './upload.ts';

export function openDriver(bucket: string, settings: StorageSettings): Driver {
  return new S3Driver(clientOf(settings.s3), bucket);
}

class S3Driver implements Driver {
  readonly noVersion = '"00000000000000000000000000000000"';
  readonly faultOf = faultOf;
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  readonly head: Driver['head'] = async (key, abortSignal) => {
    try {
      const answer = await this.#client.send(new HeadObjectCommand(this.#of(key)), { abortSignal });
      const { ContentLength, ETag, LastModified, Metadata } = answer;
      return { ...objectOf(key, ContentLength, ETag, LastModified), sha256: Metadata?.[SHA256] ?? null };
    } catch (error) {
      if (faultOf(error).fault !== 'missing') throw error;
      // An answer to HEAD has no body that would say what is missing.
      await this.#list({ MaxKeys: 1 }, abortSignal);
      return null;
    }
  };

  readonly read: Driver['read'] = async (key, { offset, version }, signal) => {
    const range = offset === 0 ? {} : { Range: `bytes=${offset}-` };
    const match = version === null ? {} : { IfMatch: version };
    try {
      const command = new GetObjectCommand({ ...this.#of(key), ...range, ...match });
      const answer = await this.#client.send(command, { abortSignal: signal });
      const { Body, ContentRange, ContentLength, ETag } = answer;
      const total = totalOf(ContentRange);
      if (offset > 0 && total === undefined)
        throw new StorageError('invalid', 'the store does not heed Range, so reads cannot be resumed');
      const body = required(Body, 'a body') as unknown as AsyncIterable<Uint8Array>;
      const bytes = required(total ?? ContentLength, 'a length');
      return { version: required(ETag, 'an ETag'), bytes, body };
    } catch (error) {
      if ((error as { name?: string }).name !== 'InvalidRange') throw error;
      return readNothing(this, { key, version }, error, signal);
    }
  };

  readonly page: Driver['page'] = async (prefix, after, signal) => {
    const next = after === null ? {} : { ContinuationToken: after };
    const part = await this.#list({ Prefix: prefix, ...next }, signal);
    const { Contents = [], NextContinuationToken } = part;
    const objects = Contents.map(({ Key, Size, ETag, LastModified }) =>
      objectOf(Key, Size, ETag, LastModified),
    );
    return { objects, next: hasMore(part, NextContinuationToken) ? (NextContinuationToken ?? null) : null };
  };

  readonly put: Driver['put'] = async (key, { bytes, size, sha256 }, condition, abortSignal) => {
    const command = new PutObjectCommand({
      ...this.#of(key),
      Body: bytes,
      ContentLength: size,
      Metadata: { [SHA256]: sha256 },
      ...headersOf(condition),
    });
    const { ETag } = await this.#client.send(command, { abortSignal });
    return required(ETag, 'an ETag');
  };

  readonly upload: Driver['upload'] = (key, { sha256 }, condition, signal) => {
    const { version } = condition;
    const seemsToHold = async (each: AbortSignal): Promise<boolean> =>
      version === null || (await this.head(key, each))?.version === version;
    const checked = { headers: headersOf(condition), seemsToHold };
    return beginUpload(this.#client, this.#of(key), { [SHA256]: sha256 }, checked, signal);
  };

  readonly remove: Driver['remove'] = async (key, version, abortSignal) => {
    const match = version === null ? {} : { IfMatch: version };
    const command = new DeleteObjectCommand({ ...this.#of(key), ...match });
    const { $metadata } = await this.#client.send(command, { abortSignal });
    await checkRemoved(this, { key, version }, $metadata.httpStatusCode, abortSignal);
  };

  readonly remains: Driver['remains'] = (key, signal) => remainsOf(this.#client, this.#of(key), signal);

  close(): void {
    this.#client.destroy();
  }

  #list(
    options: { Prefix?: string; ContinuationToken?: string; MaxKeys?: number },
    abortSignal: AbortSignal,
  ) {
    return this.#client.send(new ListObjectsV2Command({ Bucket: this.#bucket, ...options }), { abortSignal });
  }

  #of(key: string): S3Object {
    return { Bucket: this.#bucket, Key: key };
  }
}

function headersOf({ version }: Condition): { IfNoneMatch: '*' } | { IfMatch: string } {
  return version === null ? { IfNoneMatch: '*' } : { IfMatch: version };
}

/** Settings that are null the SDK finds itself: variables, profiles, the identity of a pod or machine. */
export function clientOf(settings: StorageSettings['s3']): S3Client {
  const { endpoint, region, profile, forcePathStyle, accessKeyId, secretAccessKey, sessionToken } = settings;
  const config: S3ClientConfig = {
    // remote-store.ts retries.
    maxAttempts: 1,
    followRegionRedirects: true,
    // Other stores with the protocol refuse the newer checksums; the signature has a hash of the body.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
  };
  if (endpoint !== null) config.endpoint = endpoint;
  if (region !== null) config.region = region;
  if (profile !== null) config.profile = profile;
  if (forcePathStyle) config.forcePathStyle = true;
  if (accessKeyId !== null && secretAccessKey !== null)
    config.credentials = {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === null ? {} : { sessionToken }),
    };
  return new S3Client(config);
}
