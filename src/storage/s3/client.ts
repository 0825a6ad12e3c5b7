import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { StorageSettings } from '../fields.ts';

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
