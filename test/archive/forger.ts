import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { millrace, type Ended } from '../support/millrace.ts';

/** A manifest line as the forger sees it: an object with a link to the line before. */
export type Fields = Record<string, unknown>;

const MANIFEST = '_manifest.jsonl';

/** What `archive verify` says with the keys of a config. */
export function verifyAs(
  { archive, config }: { readonly archive: string; readonly config: string },
  ...more: string[]
): Promise<Ended> {
  return millrace(['archive', 'verify', archive, '--config', config, ...more]);
}

/** Codes of the differences that it has named. */
export function codesIn({ stdout }: Ended): string[] {
  return [...stdout.matchAll(/^difference .*?: ([a-z_]+): /gm)].map(([, name = '']) => name);
}

export function linesOf(archive: string): Fields[] {
  const text = readFileSync(join(archive, MANIFEST), 'utf8').trimEnd();
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Fields]));
}

/**
 * Writes a manifest as somebody does who has the disk and knows the format: every link is made good, by a hash chain of
 * this file's own.
 */
export function forge(
  archive: string,
  lines: readonly Fields[],
  finish = (line: Fields): string => JSON.stringify(line),
): void {
  let previous = sha256('');
  const texts = lines.map((line) => {
    const text = finish({ ...line, previous });
    previous = sha256(text);
    return text;
  });
  writeFileSync(join(archive, MANIFEST), texts.map((text) => `${text}\n`).join(''));
}

/** Adds lines behind what is there, bytes of the rest untouched. */
export function append(
  archive: string,
  lines: readonly Fields[],
  finish = (line: Fields): string => JSON.stringify(line),
): void {
  const path = join(archive, MANIFEST);
  for (const line of lines) {
    const text = readFileSync(path, 'utf8');
    const last = text.trimEnd().split('\n').at(-1) ?? '';
    writeFileSync(path, `${text}${finish({ ...line, previous: sha256(last) })}\n`);
  }
}

export function unsigned({ signed_by: _key, signature: _signature, ...line }: Fields): Fields {
  return line;
}

/** Signs with a key of the forger's own. */
export function signingForger(): (line: Fields) => string {
  const { privateKey } = generateKeyPairSync('ed25519');
  const signedBy = createPublicKey(privateKey).export({ format: 'jwk' }).x;
  return (line) => {
    const text = `${JSON.stringify(unsigned(line)).slice(0, -1)},"signed_by":"${signedBy}"`;
    const signature = sign(null, Buffer.from(`millrace manifest 1\n${text}`), privateKey);
    return `${text},"signature":"${signature.toString('base64url')}"}`;
  };
}

/** Says that an erasure removed a file. */
export function removalOf(file: string, erasure = 'abcdef0123456789'): Fields {
  return {
    erasure,
    at: '2026-11-21T04:00:00.000Z',
    file,
    removed: 5,
    records: 0,
    bytes: 0,
    sha256: null,
    first_received_at: null,
    last_received_at: null,
    types: {},
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
