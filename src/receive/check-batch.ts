import type { SignedText } from '../core/verifier.ts';

/**
 * Bodies on their way to the thread that checks them, and back with what it has found, in one buffer: behind a head of
 * 32-bit numbers stand prefix, signatures and body of each, and the next one at a multiple of 8.
 */
const SIZES = 4;
const MATCHED = SIZES + 12;
const IS_OBJECT = MATCHED + 4;
const SPANS = IS_OBJECT + 4;

/** What is to be checked. */
export interface Unchecked extends SignedText {
  readonly body: Buffer;
}

/** What has been found. */
export interface Checked {
  /** Index of the key that matched, or -1. */
  readonly matched: number;
  /** Where the members are that are looked for; null when the body has to be looked at more closely. */
  readonly spans: Int32Array | null;
}

function headOf(names: number): number {
  return SPANS + 8 * names;
}

/** @param names how many members are looked for */
export function sizeOf({ prefix, signatures, body }: Unchecked, names: number): number {
  return (headOf(names) + prefix.length + signatures.length + body.length + 7) & -8;
}

/** Texts are of headers: a byte a character. @returns where the next one stands */
export function writeUnchecked(bytes: Buffer, at: number, unchecked: Unchecked, names: number): number {
  const { prefix, signatures, body } = unchecked;
  const size = sizeOf(unchecked, names);
  bytes.writeUInt32LE(size, at);
  for (const [index, { length }] of [prefix, signatures, body].entries())
    bytes.writeUInt32LE(length, at + SIZES + 4 * index);
  let to = at + headOf(names);
  to += bytes.write(prefix, to, 'latin1');
  to += bytes.write(signatures, to, 'latin1');
  body.copy(bytes, to);
  return at + size;
}

/** The body is a view. */
export function readUnchecked(bytes: Buffer, at: number, names: number): Unchecked {
  const [prefix = 0, signatures = 0, body = 0] = [0, 1, 2].map((index) =>
    bytes.readUInt32LE(at + SIZES + 4 * index),
  );
  const from = at + headOf(names);
  const end = from + prefix + signatures;
  return {
    prefix: bytes.toString('latin1', from, from + prefix),
    signatures: bytes.toString('latin1', from + prefix, end),
    body: bytes.subarray(end, end + body),
  };
}

export function writeChecked(bytes: Buffer, at: number, { matched, spans }: Checked): void {
  bytes.writeInt32LE(matched, at + MATCHED);
  bytes.writeInt32LE(spans === null ? 0 : 1, at + IS_OBJECT);
  spans?.forEach((place, index) => bytes.writeInt32LE(place, at + SPANS + 4 * index));
}

export function readChecked(bytes: Buffer, at: number, names: number): Checked {
  const isObject = bytes.readInt32LE(at + IS_OBJECT) === 1;
  const spans = isObject ? new Int32Array(2 * names) : null;
  if (spans !== null)
    for (let index = 0; index < spans.length; index += 1)
      spans[index] = bytes.readInt32LE(at + SPANS + 4 * index);
  return { matched: bytes.readInt32LE(at + MATCHED), spans };
}

/** Where the one after the one at `at` stands. */
export function nextAfter(bytes: Buffer, at: number): number {
  return at + bytes.readUInt32LE(at);
}

/** A clock that is the same in all threads, milliseconds. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
