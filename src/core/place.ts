import { dirname, join } from 'node:path';
import { MillraceError } from './errors.ts';

/** A folder, or a prefix in a bucket or container. */
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

/** False for the path of a folder. @throws as `parsePlace` */
export function isStoreUrl(place: string): boolean {
  return parsePlace(place).scheme !== 'folder';
}

/**
 * @param place `s3://bucket/prefix`, `azblob://container/prefix`, `gs://bucket/prefix`, or the path of a folder
 * @throws MillraceError usage for any other URL
 */
export function parsePlace(place: string): Place {
  // `s3:/acme` is a typing error, and no folder called `s3:`.
  const [, written, rest = ''] =
    /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/s.exec(place) ?? MISTYPED.exec(place) ?? [];
  if (written === undefined) return { scheme: 'folder', path: place };
  const scheme = SCHEMES.find((known) => known === written.toLowerCase());
  if (scheme === undefined) throw wrong(`${written}:// is not known here; ${KNOWN}`);
  // Not repeated in an error: it may have a secret by mistake.
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

const MISTYPED = new RegExp(`^(${SCHEMES.join('|')}):(.*)$`, 'si');
const KNOWN = `use ${SCHEMES.map((scheme) => `${scheme}://`).join(', ')}, or the path of a folder`;

/** The limit of each store, with the prefix. */
const KEY_BYTES = 1024;

/** Why a text cannot be the key of an object, or null. */
export function keyProblem(key: string): string | null {
  const isPlain = key.split('/').every((level) => level !== '' && level !== '.' && level !== '..');
  // oxlint-disable-next-line no-control-regex -- looks for control characters
  if (!isPlain || /[\0-\x1f\x7f\\]/.test(key)) return 'must be levels with / between them, without . and ..';
  if (!key.isWellFormed()) return 'is not well-formed Unicode';
  return Buffer.byteLength(key) > KEY_BYTES ? `is longer than ${KEY_BYTES} bytes` : null;
}

function wrong(detail: string): MillraceError {
  return new MillraceError('usage', detail);
}

/** Default folder in which sinks gather records for a store, each in a folder of its own. */
export function spoolBeside(journal: string): string {
  return join(dirname(journal), 'spool');
}

/** Default folder for the checkpoints of replays, each in a folder of its own. */
export function replaysBeside(journal: string): string {
  return join(dirname(journal), 'replay');
}
