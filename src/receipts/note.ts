import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
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
/** Of a witness, which signs with the time (C2SP tlog-cosignature). */
const COSIGNATURE = 4;
const SIGNATURE_BYTES = 64;
/** What stands in front of a raw key in its DER form. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** @param name of the log: its origin, without spaces and `+` */
export function noteSigner(name: string, privateKey: KeyObject): NoteSigner {
  return { ...verifierOf(name, createPublicKey(privateKey)), privateKey };
}

/** @throws when the PEM is no Ed25519 key */
export function readSigner(name: string, pem: string): NoteSigner {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('must be an Ed25519 key');
  return noteSigner(name, key);
}

function verifierOf(name: string, key: KeyObject, type = ED25519): NoteVerifier {
  return { name, key, id: idOf(name, type, rawOf(key)) };
}

/** As it is handed out: `name+id+base64`, as Go's sumdb/note and C2SP write it. */
export function verifierText({ name, id, key }: NoteVerifier): string {
  const typed = Buffer.concat([Buffer.of(ED25519), rawOf(key)]);
  return `${name}+${id.toString('hex')}+${typed.toString('base64')}`;
}

/** @throws RangeError that says what is wrong with it */
export function parseVerifier(text: string): NoteVerifier {
  return parseKey(text, ED25519, 'a log, such as acme.example/events+1a2b3c4d+AbCd…');
}

/** The key of a witness. @throws RangeError that says what is wrong with it */
export function parseCosigner(text: string): NoteVerifier {
  return parseKey(text, COSIGNATURE, 'a witness (Ed25519), such as witness.example/w1+1a2b3c4d+BAbC…');
}

function parseKey(text: string, type: number, what: string): NoteVerifier {
  const [, name = '', id = '', encoded = ''] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text.trim()) ?? [];
  const typed = Buffer.from(encoded, 'base64');
  if (typed.length !== HASH_BYTES + 1 || typed[0] !== type)
    throw new RangeError(`must be the key of ${what}`);
  const key = createPublicKey({ key: Buffer.concat([SPKI, typed.subarray(1)]), format: 'der', type: 'spki' });
  const verifier = verifierOf(name, key, type);
  if (verifier.id.toString('hex') !== id) throw new RangeError('its id is not that of its key and name');
  return verifier;
}

function rawOf(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(SPKI.length);
}

function idOf(name: string, type: number, raw: Buffer): Buffer {
  return sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(type), raw])).subarray(0, 4);
}

/** @param text ends with a line feed */
export function signNote(text: string, { name, id, privateKey }: NoteSigner): string {
  const signature = sign(null, Buffer.from(text), privateKey);
  return `${text}\n— ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;
}

/** The text of a note, if this key has signed it; else null. */
export function openNote(note: string, verifier: NoteVerifier): string | null {
  const { text, signatures } = signaturesIn(note, verifier);
  const isSigned = signatures.some(({ bytes }) => verify(null, Buffer.from(text), verifier.key, bytes));
  return isSigned ? text : null;
}

/** A signature of a witness, and when it made it: from then on it signs no log that does not go on from this one. */
export interface Cosignature {
  readonly line: string;
  /** Seconds since the epoch. */
  readonly time: number;
}

/** What a witness has signed of a note; nothing when it has not. */
export function cosignaturesIn(note: string, witness: NoteVerifier): Cosignature[] {
  const { text, signatures } = signaturesIn(note, witness);
  return signatures.flatMap(({ line, bytes }) => {
    if (bytes.length !== 8 + SIGNATURE_BYTES) return [];
    const time = Number(bytes.readBigUInt64BE());
    const message = Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);
    return verify(null, message, witness.key, bytes.subarray(8)) ? [{ line, time }] : [];
  });
}

/** The text of a note, and what may be signatures of one key. */
function signaturesIn(
  note: string,
  { name, id }: NoteVerifier,
): { readonly text: string; readonly signatures: { readonly line: string; readonly bytes: Buffer }[] } {
  const end = note.lastIndexOf('\n\n');
  if (end === -1) return { text: '', signatures: [] };
  const signatures = note
    .slice(end + 2)
    .split('\n')
    .flatMap((line) => {
      const [, who, encoded = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
      const bytes = Buffer.from(encoded, 'base64');
      return who === name && bytes.subarray(0, 4).equals(id) ? [{ line, bytes: bytes.subarray(4) }] : [];
    });
  return { text: note.slice(0, end + 1), signatures };
}

/** How far a log is: what its checkpoint says. */
export interface TreeHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

export function checkpointText({ origin, size, root }: TreeHead): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/** Null when it is no checkpoint that this key has signed. */
export function openCheckpoint(note: string, verifier: NoteVerifier): TreeHead | null {
  const [origin = '', count = '', encoded = ''] = openNote(note, verifier)?.split('\n') ?? [];
  const size = Number(count);
  const root = Buffer.from(encoded, 'base64');
  const isOne = /^(0|[1-9]\d*)$/.test(count) && Number.isSafeInteger(size) && root.length === HASH_BYTES;
  return isOne && origin === verifier.name ? { origin, size, root } : null;
}
