import { isRecord } from '../../lib/is-record.ts';
import { jsonIn } from '../../lib/parsed.ts';
import type { Message } from '../../sinks/kafka/message.ts';
import { openLine, sealLine } from '../../seal/record.ts';
import type { KeyUse } from '../../seal/shared-keys.ts';
import type { Read } from './cluster.ts';
import type { RawRecord } from './record.ts';
import type { IdAt } from './ids.ts';

/** What stands outside of a sealed record: what anybody needs who cannot open it, and nothing of whose it is. */
export interface Outside {
  /** Name and id of the key. */
  readonly name: string;
  readonly id: string;
  /** Milliseconds since the epoch at which its event was received. */
  readonly at: number;
  /** What is to be kept of its ids: fingerprint in base64, and the second, null for that of the record. */
  readonly ids: readonly (readonly [print: string, second: number | null])[];
  /** A person has sent it on its way again. */
  readonly again: boolean;
}

const SEALED = Buffer.from('millrace-sealed');
const NONCE = 24;
const [KEY_ID, NAME, PRINT] = [/^[0-9a-f]{32}$/, /^[0-9a-f]{96}$/, /^[\w+/]{27}=$/];
/** The keyed hash of no user at all. */
const NOBODY = '0'.repeat(32);
const SECOND = 1000;

/** A record whose headers and value are inside one that only the key opens. What it is kept under stays. */
export function sealMessage(
  message: Message,
  { id, name, key }: KeyUse,
  about: Omit<Outside, 'name' | 'id'>,
): Message {
  const outside: Outside = { name, id, ...about };
  const { nonce, data } = sealLine(id, key, timeOf(outside), packed(message));
  return {
    key: message.key,
    value: Buffer.concat([nonce, data]),
    headers: [[SEALED, Buffer.from(JSON.stringify(outside))]],
  };
}

/** What a record says outside; null for one that is not sealed, `damaged` for one that nobody here has sealed. */
export function outsideOf({ headers }: Pick<RawRecord, 'headers'>): Outside | 'damaged' | null {
  const text = headers.find(([name]) => name?.equals(SEALED) === true)?.[1];
  if (text === undefined) return null;
  const value = jsonIn(String(text));
  return isOutside(value) ? value : 'damaged';
}

/** Whether it was sealed by its team, for it names no user: then it can be of whoever its body names. */
export function namesNoUser({ name }: Pick<Outside, 'name'>): boolean {
  return name.startsWith(NOBODY);
}

function isOutside(value: unknown): value is Outside {
  if (!isRecord(value)) return false;
  const { id, name, at, ids, again } = value;
  return (
    KEY_ID.test(String(id)) &&
    NAME.test(String(name)) &&
    Number.isSafeInteger(at) &&
    typeof again === 'boolean' &&
    Array.isArray(ids) &&
    ids.length <= 2 &&
    ids.every(
      (each) =>
        Array.isArray(each) &&
        PRINT.test(String(each[0])) &&
        (each[1] === null || Number.isSafeInteger(each[1])),
    )
  );
}

/** The ids of a sealed record, for the window. */
export function sealedIds(
  { ids }: Outside,
  { offset, time }: Pick<Read, 'offset' | 'time'>,
): readonly IdAt[] {
  return ids.map(([print, second]) => ({
    print: Buffer.from(print, 'base64'),
    second: second ?? Math.max(0, Math.floor(time / SECOND)),
    offset,
  }));
}

/** The record inside; null when it is not as it was sealed. */
export function openMessage(value: Buffer | null, outside: Outside, { id, key }: KeyUse): RawRecord | null {
  if (value === null || value.length < NONCE) return null;
  const [nonce, data] = [value.subarray(0, NONCE), value.subarray(NONCE)];
  const inside = openLine(key, { key: id, received_at: timeOf(outside), nonce, data });
  return inside === null ? null : unpacked(inside);
}

/** Bound to what is inside. */
function timeOf({ at }: Pick<Outside, 'at'>): string {
  return String(at);
}

/** Headers one after the other, each with the lengths of name and value in front, then the value. */
function packed({ headers, value: body }: Message): Buffer {
  const parts: Buffer[] = [Buffer.of(headers.length)];
  for (const [name, value] of headers) {
    const text = typeof value === 'string' ? Buffer.from(value) : value;
    const lengths = Buffer.allocUnsafe(5);
    lengths.writeUInt8(name.length);
    lengths.writeUInt32LE(text.length, 1);
    parts.push(lengths, name, text);
  }
  return Buffer.concat([...parts, body ?? Buffer.alloc(0)]);
}

function unpacked(bytes: Buffer): RawRecord {
  const headers: [Buffer, Buffer][] = [];
  let at = 1;
  for (let left = bytes.readUInt8(0); left > 0; left -= 1) {
    const [name, text] = [bytes.readUInt8(at), bytes.readUInt32LE(at + 1)];
    const from = at + 5 + name;
    headers.push([bytes.subarray(at + 5, from), bytes.subarray(from, from + text)]);
    at = from + text;
  }
  return { headers, value: bytes.subarray(at) };
}
