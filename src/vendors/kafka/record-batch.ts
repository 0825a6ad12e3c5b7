import { BATCH_BYTES, RECORD_BYTES, type Message } from './message.ts';

/**
 * The head of a batch of records. https://kafka.apache.org/documentation/#recordbatch
 * Batches are encoded here because the package makes a buffer for each number.
 */
export interface BatchHead {
  /** Id of the producer; -1 for none. */
  readonly producer: bigint;
  readonly epoch: number;
  /** Number of the first record, of all that the producer writes to the partition. */
  readonly sequence: number;
  /** Milliseconds since the epoch, of all records. */
  readonly time: number;
}

export interface Compression {
  /** The batch's number of the codec. */
  readonly bitmask: number;
  readonly compress: (records: Buffer) => Buffer | Promise<Buffer>;
}

/** Offsets in the head; the checksum covers all from the attributes on. */
const [LENGTH, MAGIC, CHECKSUM, ATTRIBUTES, LAST_DELTA] = [8, 16, 17, 21, 23];
const [FIRST_TIME, LAST_TIME, PRODUCER, EPOCH, SEQUENCE, COUNT] = [27, 35, 43, 51, 53, 57];
const VERSION = 2;
const NULL_LENGTH = -1;
/** Bytes of a record that are always 0: its attributes, and its time after the batch's. */
const ZEROS = 2;

export function encodeBatch(
  records: readonly EncodedRecord[],
  head: BatchHead,
  checksum: (bytes: Buffer) => number,
): Buffer {
  const batch = joined(records);
  return withHead(batch, records.length, head, 0, checksum);
}

export async function encodeCompressed(
  records: readonly EncodedRecord[],
  head: BatchHead,
  checksum: (bytes: Buffer) => number,
  { bitmask, compress }: Compression,
): Promise<Buffer> {
  const packed = await compress(joined(records).subarray(BATCH_BYTES));
  const batch = Buffer.allocUnsafe(BATCH_BYTES + packed.length);
  packed.copy(batch, BATCH_BYTES);
  return withHead(batch, records.length, head, bitmask, checksum);
}

function withHead(
  batch: Buffer,
  count: number,
  { producer, epoch, sequence, time }: BatchHead,
  attributes: number,
  checksum: (bytes: Buffer) => number,
): Buffer {
  batch.fill(0, 0, MAGIC);
  batch.writeInt32BE(batch.length - LENGTH - 4, LENGTH);
  batch.writeInt8(VERSION, MAGIC);
  batch.writeInt16BE(attributes, ATTRIBUTES);
  batch.writeInt32BE(count - 1, LAST_DELTA);
  batch.writeBigInt64BE(BigInt(time), FIRST_TIME);
  batch.writeBigInt64BE(BigInt(time), LAST_TIME);
  batch.writeBigInt64BE(producer, PRODUCER);
  batch.writeInt16BE(epoch, EPOCH);
  batch.writeInt32BE(sequence, SEQUENCE);
  batch.writeInt32BE(count, COUNT);
  batch.writeUInt32BE(checksum(batch.subarray(ATTRIBUTES)), CHECKSUM);
  return batch;
}

/** The records, with room for the head before them. */
function joined(records: readonly EncodedRecord[]): Buffer {
  let total = BATCH_BYTES;
  for (const [index, record] of records.entries()) {
    const size = sizeAt(record, index);
    total += numberBytes(size) + size;
  }
  const batch = Buffer.allocUnsafe(total);
  let at = BATCH_BYTES;
  for (const [index, record] of records.entries()) {
    at = putNumber(batch, at, sizeAt(record, index));
    batch[at] = 0;
    batch[at + 1] = 0;
    at = putNumber(batch, at + ZEROS, index);
    batch.set(record, at);
    at += record.length;
  }
  return batch;
}

/** Bytes of a record after its length. */
function sizeAt(record: EncodedRecord, index: number): number {
  return ZEROS + numberBytes(index) + record.length;
}

/** A record as it lies in a batch, without its length and its index there. */
export type EncodedRecord = Buffer;

/** How many of the first entries one batch has room for: at least one. */
export function countInBatch(entries: readonly { readonly record: EncodedRecord }[], most: number): number {
  let bytes = BATCH_BYTES;
  const end = entries.findIndex(({ record }) => (bytes += RECORD_BYTES + record.length) > most);
  return end === -1 ? entries.length : Math.max(1, end);
}

export function encodeRecord({ key, value, headers }: Message): EncodedRecord {
  let size = bytesOf(key) + bytesOf(value) + numberBytes(headers.length);
  for (const [name, text] of headers) size += bytesOf(name) + bytesOf(text);
  const record = Buffer.allocUnsafe(size);
  let at = putBytes(record, putBytes(record, 0, key), value);
  at = putNumber(record, at, headers.length);
  for (const [name, text] of headers) at = putBytes(record, putBytes(record, at, name), text);
  return record;
}

function bytesOf(value: Buffer | string | null): number {
  if (value === null) return 1;
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  return numberBytes(length) + length;
}

function putBytes(into: Buffer, at: number, value: Buffer | string | null): number {
  if (value === null) return putNumber(into, at, NULL_LENGTH);
  if (typeof value !== 'string') {
    const begin = putNumber(into, at, value.length);
    into.set(value, begin);
    return begin + value.length;
  }
  // Written at the offset that is right for most texts, whose bytes are as many as their characters.
  const begin = at + numberBytes(value.length);
  const length = into.write(value, begin);
  if (numberBytes(length) === begin - at) putNumber(into, at, length);
  else into.write(value, putNumber(into, at, length));
  return at + numberBytes(length) + length;
}

/** A varint: seven bits a byte, the sign in the lowest. */
function putNumber(into: Buffer, at: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  let place = at;
  for (; rest > 0x7f; rest >>>= 7, place += 1) into[place] = (rest & 0x7f) | 0x80;
  into[place] = rest;
  return place + 1;
}

function numberBytes(value: number): number {
  const rest = ((value << 1) ^ (value >> 31)) >>> 0;
  return rest < 0x80 ? 1 : rest < 0x4000 ? 2 : rest < 0x20_0000 ? 3 : rest < 0x1000_0000 ? 4 : 5;
}
