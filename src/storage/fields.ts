import { z } from 'zod';
import { bytes, count, duration, flag, NOT_EMPTY, optionalText, section, TIMER } from '../lib/fields.ts';

const MIB = 1024 * 1024;
const URL_RULES = {
  pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
  hint: 'must be a URL such as http://127.0.0.1:9000',
};
const SECRET = { ...NOT_EMPTY, sensitive: true };

/** How object stores are reached; plain data, which can be passed to threads. */
export const storageSection = section({
  timeout: duration(
    '60s',
    'How long one request to an object store may take, and how long a download may stand still; then it is tried again.',
    TIMER,
  ),
  tries: count(5, 'Attempts for one request, with growing pauses; then it fails, and is tried again later.', {
    min: 1,
    max: 100,
  }),
  partBytes: bytes(
    '16MiB',
    'Objects larger than this are uploaded in parts of this size; smaller ones with one request. Up to 32 MiB of one object are held in memory and sent at once, at least one part.',
    // S3's least; Google wants multiples of 256 KiB.
    { min: 5 * MIB, max: 1024 * MIB },
  ),
  s3: section({
    endpoint: optionalText(
      'Address of another store that speaks the protocol (MinIO, R2, Ceph). Without it `AWS_ENDPOINT_URL_S3`, else AWS.',
      URL_RULES,
    ),
    region: optionalText('Region of the bucket. Without it `AWS_REGION` or the profile’s.', NOT_EMPTY),
    forcePathStyle: flag(
      false,
      'Puts the bucket into the path instead of the host name, as many stores beside AWS need it.',
    ),
    profile: optionalText('Profile of the shared AWS config that has the credentials.', NOT_EMPTY),
    accessKeyId: optionalText(
      'Access key, as `${…}`. Without it the default chain of the AWS SDK: variables, profiles, the role of a pod or machine.',
      SECRET,
    ),
    secretAccessKey: optionalText('Secret of the access key, as `${…}`.', SECRET),
    sessionToken: optionalText('Token of temporary credentials, as `${…}`.', SECRET),
  }),
  azblob: section({
    connectionString: optionalText(
      'Connection string of the storage account, as `${…}`. Without it, and without account and endpoint, `AZURE_STORAGE_CONNECTION_STRING`, else `AZURE_STORAGE_ACCOUNT`.',
      SECRET,
    ),
    account: optionalText('Name of the storage account.', {
      pattern: '^[a-z0-9]{3,24}$',
      hint: 'must be the name of a storage account',
    }),
    endpoint: optionalText(
      'Address of the blob service where it is not `https://<account>.blob.core.windows.net`.',
      URL_RULES,
    ),
    accountKey: optionalText(
      'Key of the account, as `${…}`. Without it and sasToken the default chain of Azure: workload identity, managed identity, the CLI’s login.',
      SECRET,
    ),
    sasToken: optionalText('Shared access signature for the container, as `${…}`.', SECRET),
    managedIdentityClientId: optionalText('Client id of a user-assigned managed identity.', NOT_EMPTY),
  }),
  gs: section({
    endpoint: optionalText(
      'Address of the service where it is not Google’s. One with `http:` is asked without credentials. Without it `STORAGE_EMULATOR_HOST`, else Google’s.',
      URL_RULES,
    ),
    keyFile: optionalText(
      'File with the credentials of a service account or a workload identity. Without it the default chain of Google: `GOOGLE_APPLICATION_CREDENTIALS`, the CLI’s login, the identity of a pod or machine.',
      NOT_EMPTY,
    ),
    userProject: optionalText(
      'Project that pays for the requests, where the bucket asks for that.',
      NOT_EMPTY,
    ),
  }),
});

export type StorageSettings = z.output<typeof storageSection>;
