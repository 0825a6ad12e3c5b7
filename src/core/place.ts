import { dirname, join } from 'node:path';
import { MillraceError } from './errors.ts';

/** Where files lie: in a folder, or in a bucket or container under a prefix. */
export type Place =
  | { readonly scheme: 'folder'; readonly path: string }
  | {
      readonly scheme: StoreScheme;
      readonly bucket: string;
      /** Without `/` at its ends; empty for the whole bucket. */
      readonly prefix: string;
    };

const SCHEMES = ['s3', 'azblob', 'gs'] as const;
export type StoreScheme = (typeof SCHEMES)[number];

/** Whether a place is written as the URL of an object store; any other is the path of a folder. @throws as `parsePlace` */
export function isStoreUrl(place: string): boolean {
  return parsePlace(place).scheme !== 'folder';
}

/**
 * @param place `s3://bucket/prefix`, `azblob://container/prefix`, `gs://bucket/prefix`, or the path of a folder
 * @throws MillraceError usage for a URL of another kind: a folder of that name would be a surprise
 */
export function parsePlace(place: string): Place {
  // With one slash or none it is a slip of the pen, not a folder called `s3:`.
  const [, written, rest = ''] =
    /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/s.exec(place) ?? SLIP.exec(place) ?? [];
  if (written === undefined) return { scheme: 'folder', path: place };
  const scheme = SCHEMES.find((known) => known === written.toLowerCase());
  if (scheme === undefined) throw wrong(`${written}:// is not known here; ${KNOWN}`);
  // What is written may hold a secret by mistake, so it is not repeated.
  const [bucket = '', ...levels] = rest.replace(/\/$/, '').split('/');
  if (!place.slice(written.length).startsWith('://') || !/^[A-Za-z0-9$][A-Za-z0-9._-]*$/.test(bucket))
    throw wrong(
      `after ${scheme}:// comes the name of a bucket or container, such as ${scheme}://acme/archive`,
    );
  const prefix = levels.join('/');
  if (/[?#]/.test(prefix) || (prefix !== '' && keyProblem(prefix) !== null))
    throw wrong(
      `the prefix of ${scheme}://${bucket} must be levels with / between them, without . and .., ? and #`,
    );
  return { scheme, bucket, prefix };
}

const SLIP = new RegExp(`^(${SCHEMES.join('|')}):(.*)$`, 'si');
const KNOWN = `use ${SCHEMES.map((scheme) => `${scheme}://`).join(', ')}, or the path of a folder`;

/** The most that each of the stores takes, prefix and all. */
const KEY_BYTES = 1024;

/** Why something cannot be a key of an object, or null. */
export function keyProblem(key: string): string | null {
  const isPlain = key.split('/').every((level) => level !== '' && level !== '.' && level !== '..');
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  if (!isPlain || /[\0-\x1f\x7f\\]/.test(key)) return 'must be levels with / between them, without . and ..';
  if (!key.isWellFormed()) return 'is not well-formed Unicode';
  return Buffer.byteLength(key) > KEY_BYTES ? `is longer than ${KEY_BYTES} bytes` : null;
}

function wrong(detail: string): MillraceError {
  return new MillraceError('usage', detail);
}

/** Where sinks that send to a store gather what they send, each in a folder of its own, when the config names no place. */
export function spoolBeside(journal: string): string {
  return join(dirname(journal), 'spool');
}

/** Where replays keep how far they are, each in a folder of its own, when the command names no place. */
export function replaysBeside(journal: string): string {
  return join(dirname(journal), 'replay');
}
