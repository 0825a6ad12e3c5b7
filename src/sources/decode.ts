import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

/** A body as the publisher had it before compression, or why it could not be told. `body` is then as it came. */
export type Decoded =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly code: 'encoding_unknown' | 'encoding_broken'; readonly body: Buffer };

const unzip = promisify(gunzip);

/** @param maxBytes above which a decompressed body is refused as `encoding_broken`. */
export async function decodeBody(body: Buffer, encoding: string | null, maxBytes: number): Promise<Decoded> {
  if (encoding === null || encoding === '' || encoding === 'identity') return { ok: true, body };
  if (encoding !== 'gzip') return { ok: false, code: 'encoding_unknown', body };
  try {
    return { ok: true, body: await unzip(body, { maxOutputLength: maxBytes }) };
  } catch {
    return { ok: false, code: 'encoding_broken', body };
  }
}
