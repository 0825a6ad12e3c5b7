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
import { type Condition, type Driver, checkRemoved, readNothing, totalOf } from '../driver.ts';
import { goesOn, faultOf } from './fault.ts';
import type { StorageSettings } from '../fields.ts';
import { remainsOf } from './remains.ts';
import { S3Upload } from './upload.ts';

/** Name of the metadata that an object's hash is kept under. */
const SHA256 = 'sha256';

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

  readonly head: Driver['head'] = async (key, signal) => {
    try {
      const { ContentLength, ETag, LastModified, Metadata } = await this.#client.send(
        new HeadObjectCommand(this.#of(key)),
        { abortSignal: signal },
      );
      return { ...stored(key, ContentLength, ETag, LastModified), sha256: Metadata?.[SHA256] ?? null };
    } catch (error) {
      if (faultOf(error).fault !== 'missing') throw error;
      // An answer to HEAD has no body that would say what is missing.
      await this.#list({ MaxKeys: 1 }, signal);
      return null;
    }
  };

  readonly read: Driver['read'] = async (key, { offset, version }, signal) => {
    const range = offset === 0 ? {} : { Range: `bytes=${offset}-` };
    const match = version === null ? {} : { IfMatch: version };
    try {
      const answer = await this.#client.send(new GetObjectCommand({ ...this.#of(key), ...range, ...match }), {
        abortSignal: signal,
      });
      const { Body, ContentRange, ContentLength = 0, ETag } = answer;
      const total = totalOf(ContentRange);
      if (offset > 0 && total === undefined)
        throw new StorageError('invalid', 'the store does not heed Range, so reads cannot be resumed');
      if (Body === undefined) throw new StorageError('unreachable', 'an answer without a body');
      const body = Body as unknown as AsyncIterable<Uint8Array>;
      return { version: versionOf(ETag), bytes: total ?? ContentLength, body };
    } catch (error) {
      if ((error as { name?: string }).name !== 'InvalidRange') throw error;
      return readNothing(this, { key, version }, error, signal);
    }
  };

  readonly page: Driver['page'] = async (prefix, after, signal) => {
    const next = after === null ? {} : { ContinuationToken: after };
    const part = await this.#list({ Prefix: prefix, ...next }, signal);
    const { Contents = [], NextContinuationToken } = part;
    const objects = Contents.map(({ Key = '', Size, ETag, LastModified }) =>
      stored(Key, Size, ETag, LastModified),
    );
    return { objects, next: goesOn(part, NextContinuationToken) ? (NextContinuationToken ?? null) : null };
  };

  readonly put: Driver['put'] = async (key, whole, condition, signal) => {
    const { ETag } = await this.#client.send(
      new PutObjectCommand({
        ...this.#of(key),
        Body: whole.bytes,
        ContentLength: whole.size,
        Metadata: { [SHA256]: whole.sha256 },
        ...conditionOf(condition),
      }),
      { abortSignal: signal },
    );
    return versionOf(ETag);
  };

  readonly upload: Driver['upload'] = async (key, facts, condition, signal) => {
    const { version } = condition;
    const target = { ...this.#of(key), Metadata: { [SHA256]: facts.sha256 } };
    const finishing = {
      conditions: conditionOf(condition),
      seemsToHold: async (each: AbortSignal) =>
        version === null || (await this.head(key, each))?.version === version,
    };
    return S3Upload.begin(this.#client, target, finishing, signal);
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

  #of(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: key };
  }
}

function conditionOf({ version }: Condition): { IfNoneMatch: '*' } | { IfMatch: string } {
  return version === null ? { IfNoneMatch: '*' } : { IfMatch: version };
}

function stored(key: string, size: number | undefined, etag: string | undefined, modified: Date | undefined) {
  return { key, bytes: size ?? 0, version: versionOf(etag), modifiedAt: modified?.getTime() ?? 0 };
}

function versionOf(etag: string | undefined): string {
  if (etag === undefined || etag === '') throw new StorageError('unreachable', 'an answer without an ETag');
  return etag;
}

/** What is not configured here the SDK finds by its own rules: variables, profiles, the identity of a pod or machine. */
export function clientOf(settings: StorageSettings['s3']): S3Client {
  const { endpoint, region, profile, forcePathStyle, accessKeyId, secretAccessKey, sessionToken } = settings;
  const config: S3ClientConfig = {
    // Retrying is remote-store.ts's.
    maxAttempts: 1,
    followRegionRedirects: true,
    // Stores that only speak the protocol refuse the newer checksums; each request's body is hashed for its signature.
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
