import type { RequestHeaders } from '../core/verifier.ts';

/** Content encodings that are undone before the signature is checked: senders sign what they mean, not how it travels. */
export type Encoding = 'identity' | 'gzip' | 'deflate' | 'br' | 'zstd';

const JSON_MEDIA_TYPE = /^\s*(?:application\/json|[\w!#$&^.+-]+\/[\w!#$&^.+-]+\+json)\s*(?:;|$)/i;

const ENCODINGS: ReadonlyMap<string, Encoding> = new Map([
  ['', 'identity'],
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
  ['zstd', 'zstd'],
]);

/** A missing media type passes: the signature says more about a body than its label does. */
export function isJson(headers: RequestHeaders): boolean {
  const type = headers['content-type'];
  return type === undefined || type === 'application/json' || JSON_MEDIA_TYPE.test(String(type));
}

/** @returns `null` for an encoding that is not known, or for several on top of each other. */
export function encodingOf(headers: RequestHeaders): Encoding | null {
  const encoding = headers['content-encoding'];
  if (encoding === undefined) return 'identity';
  return ENCODINGS.get(String(encoding).trim().toLowerCase()) ?? null;
}

/** The declared length in bytes; `null` when the body comes in chunks. Node has already refused what is no number. */
export function declaredLength(headers: RequestHeaders): number | null {
  const length = headers['content-length'];
  if (length !== undefined) return Number(length);
  return headers['transfer-encoding'] === undefined ? 0 : null;
}
