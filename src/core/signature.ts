import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';

/**
 * Ed25519 signatures of one line of JSON. The line ends in `,"signed_by":"<public key>","signature":"<signature>"}`, both
 * base64url. Signed are its kind, and its text up to the signature.
 */
export interface Signer {
  /** 43 digits of base64url. */
  readonly publicKey: string;
  readonly key: KeyObject;
}

/** What the line belongs to: a signature is valid for its own kind only. */
export type SignedKind = 'manifest' | 'receipt' | 'head' | 'ledger' | 'key store' | 'dropped';

/** `valid`: the owner of the private key of `by` wrote this text. */
export type Checked =
  | { readonly state: 'valid'; readonly by: string }
  | { readonly state: 'unsigned'; readonly by: null }
  | { readonly state: 'invalid'; readonly by: null };

const UNSIGNED: Checked = { state: 'unsigned', by: null };
const INVALID: Checked = { state: 'invalid', by: null };
const SIGNED = /^(.*,"signed_by":"([\w-]{43})"),"signature":"([\w-]{86})"\}$/s;

/** @param json one object, compact, with at least one field */
export function signJson(kind: SignedKind, json: string, { key, publicKey }: Signer): string {
  const text = `${json.slice(0, -1)},"signed_by":"${publicKey}"`;
  return `${text},"signature":"${sign(null, messageOf(kind, text), key).toString('base64url')}"}`;
}

export function checkSigned(kind: SignedKind, json: string): Checked {
  const [, text, by, signature] = SIGNED.exec(json) ?? [];
  if (text === undefined || by === undefined || signature === undefined)
    return /"signature"\s*:/.test(json) ? INVALID : UNSIGNED;
  try {
    const bytes = Buffer.from(signature, 'base64url');
    // The last digit has unused bits: without this check, one signature could be written in several ways.
    const isPlain = bytes.toString('base64url') === signature;
    return isPlain && verify(null, messageOf(kind, text), keyOf(by), bytes)
      ? { state: 'valid', by }
      : INVALID;
  } catch {
    return INVALID;
  }
}

/** Whether a text can be a public key. */
export function isPublicKey(text: string): boolean {
  try {
    return /^[\w-]{43}$/.test(text) && keyOf(text).asymmetricKeyType === 'ed25519';
  } catch {
    return false;
  }
}

function messageOf(kind: SignedKind, text: string): Buffer {
  return Buffer.from(`millrace ${kind} 1\n${text}`);
}

/** The last key used: a manifest has one, or a few in turns. */
let last: { readonly text: string; readonly key: KeyObject } | null = null;

function keyOf(text: string): KeyObject {
  if (last?.text !== text)
    last = { text, key: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: text }, format: 'jwk' }) };
  return last.key;
}
