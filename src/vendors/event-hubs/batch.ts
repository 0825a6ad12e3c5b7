import type { EventDataBatch } from '@azure/event-hubs';
import { byteLength, UNIT_BYTES, writeUtf8 } from '../../lib/utf8.ts';
import type { Message } from './message.ts';

/**
 * Messages of one partition key, encoded as one message of AMQP 1.0, byte for byte as the SDK's batch. That one makes several
 * objects and buffers for each text of each event, and takes longer than everything else that is done for the event.
 * https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
 * https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-types-v1.0-os.html
 */
export class Batch implements EventDataBatch {
  readonly maxSizeInBytes: number;
  readonly buffer: Buffer;
  readonly partitionKey?: string;
  /** Read by the SDK, though not part of the interface: the tracing spans of the messages. */
  readonly _messageSpanContexts: readonly never[] = [];
  /** The sections before the properties: the same in each message. */
  readonly #head: Buffer;
  #count = 0;
  #size: number;

  /**
   * @param key the partition key; null for none
   * @param maxBytes of the whole
   * @param buffer as large as `roomFor` says; only the batch may write to it
   */
  constructor(key: string | null, maxBytes: number, buffer: Buffer) {
    this.maxSizeInBytes = maxBytes;
    this.buffer = buffer;
    if (key !== null) this.partitionKey = key;
    const annotations = annotationsOf(key);
    this.#head = Buffer.concat([key === null ? NO_HEADER : DURABLE, annotations, NO_PROPERTIES]);
    const envelope = Buffer.concat([NO_HEADER, annotations, NO_PROPERTIES]);
    this.#size = envelope.copy(buffer);
  }

  get count(): number {
    return this.#count;
  }

  get sizeInBytes(): number {
    return this.#size;
  }

  /** Adds a message unless the whole would be too large with it. */
  tryAdd(message: Message): boolean {
    const { buffer } = this;
    const place = this.#size;
    // Its length is known afterwards, and nearly always takes four bytes.
    const start = place + LONG_HEAD;
    const size = writeMessage(buffer, start, this.#head, message) - start;
    const begin = place + binaryHead(size);
    if (begin + size > this.maxSizeInBytes) return false;
    if (begin !== start) buffer.copyWithin(begin, start, start + size);
    writeBinaryHead(buffer, place, size);
    this.#size = begin + size;
    this.#count += 1;
    return true;
  }

  /** Called by the SDK when it sends. */
  _generateMessage(): Buffer {
    return this.buffer.subarray(0, this.#size);
  }
}

/** Bytes of the buffer for a batch of these messages, and for one message more that turns out to be too large. */
export function roomFor(key: string | null, maxBytes: number, messages: readonly Message[]): number {
  const head = ENVELOPE + (key ?? '').length * UNIT_BYTES;
  let [all, largest] = [head, 0];
  for (const { body, properties } of messages) {
    let most = head + body.length;
    for (const name in properties)
      most += TEXT_HEADS + (name.length + (properties[name] ?? '').length) * UNIT_BYTES;
    all += most;
    largest = Math.max(largest, most);
  }
  return Math.min(all, maxBytes + largest);
}

const DESCRIBED = 0x00;
const SMALL_ULONG = 0x53;
const section = (code: number, ...value: readonly number[]): Buffer =>
  Buffer.from([DESCRIBED, SMALL_ULONG, code, ...value]);
const DATA = 0x75;
const APPLICATION_PROPERTIES = 0x74;
const MAP = 0xd1;
const [SHORT_TEXT, LONG_TEXT] = [0xa1, 0xb1];
const [SHORT_BINARY, LONG_BINARY] = [0xa0, 0xb0];
/** The largest length in one byte. */
const SHORT = 255;

const NO_HEADER = section(0x70, 0x45);
/** Without it the service ignores the partition key of a message. */
const DURABLE = section(0x70, 0xd0, 0, 0, 0, 5, 0, 0, 0, 1, 0x41);
const NO_PROPERTIES = section(0x73, 0x45);
const PARTITION_KEY = Buffer.from('\xa3\x13x-opt-partition-key', 'latin1');

/** Bytes before the value of a section, the first pair of a map, and the bytes of a data section. */
const SECTION = 3;
const MAP_HEAD = 9;
const LONG_HEAD = SECTION + 5;
/** Bytes without text in a message or the envelope, and bytes before a name and a value. */
const ENVELOPE = 96;
const TEXT_HEADS = 10;

function annotationsOf(key: string | null): Buffer {
  const bytes = key === null ? 0 : byteLength(key);
  const room = SECTION + MAP_HEAD + PARTITION_KEY.length + TEXT_HEADS + bytes;
  const buffer = Buffer.alloc(room);
  let at = section(0x72).copy(buffer) + MAP_HEAD;
  if (key !== null) at = writeText(buffer, at + PARTITION_KEY.copy(buffer, at), key);
  writeMapHead(buffer, SECTION, at, key === null ? 0 : 2);
  return buffer.subarray(0, at);
}

/** @returns the offset of its end */
function writeMessage(into: Buffer, start: number, head: Buffer, { body, properties }: Message): number {
  into.set(head, start);
  const map = start + head.length + SECTION;
  writeSection(into, map - SECTION, APPLICATION_PROPERTIES);
  let at = map + MAP_HEAD;
  let count = 0;
  for (const name in properties) {
    at = writeText(into, at, name);
    at = writeText(into, at, properties[name] ?? '');
    count += 2;
  }
  writeMapHead(into, map, at, count);
  at = writeBinaryHead(into, at, body.length);
  into.set(body, at);
  return at + body.length;
}

function writeSection(into: Buffer, at: number, code: number): void {
  into[at] = DESCRIBED;
  into[at + 1] = SMALL_ULONG;
  into[at + 2] = code;
}

/** @param end offset of the end of its last pair */
function writeMapHead(into: Buffer, at: number, end: number, count: number): void {
  into[at] = MAP;
  into.writeUInt32BE(end - at - 5, at + 1);
  into.writeUInt32BE(count, at + 5);
}

/** Bytes before the content of a data section. */
function binaryHead(length: number): number {
  return length <= SHORT ? SECTION + 2 : LONG_HEAD;
}

function writeBinaryHead(into: Buffer, at: number, length: number): number {
  writeSection(into, at, DATA);
  return writeLength(into, at + SECTION, length, SHORT_BINARY, LONG_BINARY);
}

function writeText(into: Buffer, start: number, text: string): number {
  const bytes = byteLength(text);
  return writeUtf8(into, writeLength(into, start, bytes, SHORT_TEXT, LONG_TEXT), text, bytes);
}

function writeLength(into: Buffer, at: number, length: number, short: number, long: number): number {
  if (length > SHORT) {
    into[at] = long;
    return into.writeUInt32BE(length, at + 1);
  }
  into[at] = short;
  into[at + 1] = length;
  return at + 2;
}
