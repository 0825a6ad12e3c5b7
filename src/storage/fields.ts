import { z } from 'zod';
import { bytes, count, duration, flag, NOT_EMPTY, optionalText, TIMER } from '../lib/fields.ts';

const MIB = 1024 * 1024;
const URL_RULES = {
  pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
  hint: 'must be a URL such as http://127.0.0.1:9000',
};
const SECRET = { ...NOT_EMPTY, sensitive: true };

const section = <const T extends z.core.$ZodLooseShape>(shape: T) =>
  z.strictObject(shape, { error: 'must be a mapping of keys to values' }).prefault({} as never);

/** How object stores are reached: plain data, so that threads can be given it. */
export const storageSection = section({
  timeout: duration(
    '60s',
    'How long one request to an object store may take, and how long a download may stand still; then it is tried again.',
    TIMER,
  ),
  tries: count(
    5,
    'Attempts for one request, with growing pauses; then it fails, and whoever needs it tries later.',
    {
      min: 1,
      max: 100,
    },
  ),
  partBytes: bytes(
    '8MiB',
    'Objects larger than this are uploaded in parts of this size, four at once where the store takes that; as much is held in memory for each.',
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
});

export type StorageSettings = z.output<typeof storageSection>;
