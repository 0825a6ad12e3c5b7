import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { ContainerClient } from '@azure/storage-blob';
import { readFile } from 'node:fs/promises';
import { startAzureBlob } from '../../support/azurite.ts';
import type { Emulator } from '../../support/object-stores/emulators.ts';
import { lacksMoto, startMoto } from '../../support/object-stores/moto.ts';
import type { Lack } from '../../support/requirements.ts';

/** A stand-in, and an upload as the vendor's documentation shows it, with nothing around it. */
export interface Rival {
  readonly lack: Lack;
  start(): Promise<Emulator>;
  /** @param settings as the emulator gives them */
  plain(settings: object, bucket: string): Upload;
}

export interface Upload {
  put(key: string, file: string): Promise<void>;
  close(): void;
}

export const RIVALS: Readonly<Record<string, Rival>> = {
  s3: { lack: lacksMoto(), start: startMoto, plain: plainS3 },
  azblob: { lack: null, start: startAzureBlob, plain: plainAzure },
};

function plainS3(settings: object, Bucket: string): Upload {
  const { s3 } = settings as { s3: Record<string, string> & { forcePathStyle: boolean } };
  const { endpoint = '', region = '', accessKeyId = '', secretAccessKey = '', forcePathStyle } = s3;
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle,
    credentials: { accessKeyId, secretAccessKey },
  });
  return {
    put: async (Key, file) => {
      await client.send(new PutObjectCommand({ Bucket, Key, Body: await readFile(file) }));
    },
    close: () => client.destroy(),
  };
}

function plainAzure(settings: object, container: string): Upload {
  const { azblob } = settings as { azblob: { connectionString: string } };
  const client = new ContainerClient(azblob.connectionString, container);
  return {
    put: async (key, file) => void (await client.getBlockBlobClient(key).uploadFile(file)),
    close: () => undefined,
  };
}
