import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import type { LogHead } from '../../core/receipt.ts';
import { HASH_BYTES, sha256 } from './hashing.ts';

/**
 * Signed notes and checkpoints: C2SP signed-note and tlog-checkpoint. A text, an empty line, and a line for each signature:
 * `— name base64(key id, signature)`.
 */
export interface NoteVerifier {
  readonly name: string;
  readonly id: Buffer;
  readonly key: KeyObject;
}

export interface NoteSigner extends NoteVerifier {
  readonly privateKey: KeyObject;
}

const ED25519 = 1;
/** DER prefix of a raw Ed25519 key. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** @param name origin of the log, without spaces and `+`. @throws Error when the PEM is not an Ed25519 key */
export function readSigner(name: string, pem: string): NoteSigner {
  const privateKey = createPrivateKey(pem);
  if (privateKey.asymmetricKeyType !== 'ed25519') throw new Error('must be an Ed25519 key');
  return { ...verifierOf(name, createPublicKey(privateKey)), privateKey };
}

function verifierOf(name: string, key: KeyObject): NoteVerifier {
  return { name, key, id: idOf(name, rawOf(key)) };
}

/** The public key as text: `name+id+base64`, as Go's sumdb/note and C2SP write it. */
export function verifierText({ name, id, key }: NoteVerifier): string {
  const typed = Buffer.concat([Buffer.of(ED25519), rawOf(key)]);
  return `${name}+${id.toString('hex')}+${typed.toString('base64')}`;
}

/** @throws RangeError for a text that is not a public key of a log */
export function parseVerifier(text: string): NoteVerifier {
  const [, name = '', id = '', encoded = ''] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text.trim()) ?? [];
  const typed = Buffer.from(encoded, 'base64');
  if (typed.length !== HASH_BYTES + 1 || typed[0] !== ED25519)
    throw new RangeError('must be the key of a log, such as acme.example/events+1a2b3c4d+AbCd…');
  const key = createPublicKey({ key: Buffer.concat([SPKI, typed.subarray(1)]), format: 'der', type: 'spki' });
  const verifier = verifierOf(name, key);
  if (verifier.id.toString('hex') !== id) throw new RangeError('its id is not that of its key and name');
  return verifier;
}

function rawOf(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(SPKI.length);
}

function idOf(name: string, raw: Buffer): Buffer {
  return sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ED25519), raw])).subarray(0, 4);
}

/** @param text ends with a line feed */
export function signNote(text: string, { name, id, privateKey }: NoteSigner): string {
  const signature = sign(null, Buffer.from(text), privateKey);
  return `${text}\n— ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;
}

/** The text of a note; null when this key has not signed it. */
function openNote(note: string, { name, id, key }: NoteVerifier): string | null {
  const end = note.lastIndexOf('\n\n');
  if (end === -1) return null;
  const text = note.slice(0, end + 1);
  const isSigned = note
    .slice(end + 2)
    .split('\n')
    .some((line) => {
      const [, who, encoded = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
      const bytes = Buffer.from(encoded, 'base64');
      if (who !== name || !bytes.subarray(0, 4).equals(id)) return false;
      return verify(null, Buffer.from(text), key, bytes.subarray(4));
    });
  return isSigned ? text : null;
}

/** What a checkpoint says of a log. */
export interface TreeHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

export function checkpointText({ origin, size, root }: TreeHead): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/** What a checkpoint says, without a look at its signature; null when the text is not a checkpoint. */
export function unverifiedHead(note: string): LogHead | null {
  const [, origin, size, root] = /^([^\n]+)\n(\d{1,15})\n([A-Za-z0-9+/]{43}=)\n/.exec(note) ?? [];
  if (origin === undefined || root === undefined) return null;
  return { origin, size: Number(size), root };
}

/** What a checkpoint says; null when this key has not signed it, or it is of another log. */
export function openCheckpoint(note: string, verifier: NoteVerifier): TreeHead | null {
  const [origin = '', count = '', encoded = ''] = openNote(note, verifier)?.split('\n') ?? [];
  const size = Number(count);
  const root = Buffer.from(encoded, 'base64');
  const isValid = /^(0|[1-9]\d*)$/.test(count) && Number.isSafeInteger(size) && root.length === HASH_BYTES;
  return isValid && origin === verifier.name ? { origin, size, root } : null;
}
