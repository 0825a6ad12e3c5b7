import { byteLength, UNIT_BYTES, writeUtf8 } from '../../lib/utf8.ts';
import type { Message } from './message.ts';

/**
 * Encodes `google.pubsub.v1.PublishRequest` as protobuf (https://protobuf.dev/programming-guides/encoding/). The SDK's encoder makes an
 * object for each number and text, and costs more than everything else that is done for an event.
 */

/** Tag of a field with a length: text, bytes or message. */
const field = (number: number): number => (number << 3) | 2;

const TOPIC = field(1);
const MESSAGE = field(2);
const DATA = field(1);
const ATTRIBUTE = field(2);
const ORDERING_KEY = field(5);
const MAP_KEY = field(1);
const MAP_VALUE = field(2);

/** Bytes of a tag with the longest length. */
const HEAD = 6;

/** An upper bound of the request's bytes. */
export function mostBytes(topic: string, messages: readonly Message[]): number {
  let most = HEAD + topic.length * UNIT_BYTES;
  for (const { data, attributes, orderingKey } of messages) {
    most += 3 * HEAD + data.length + orderingKey.length * UNIT_BYTES;
    for (const name in attributes)
      most += 3 * HEAD + (name.length + (attributes[name] ?? '').length) * UNIT_BYTES;
  }
  return most;
}

/** @param into a buffer of at least `mostBytes` @returns its beginning, with the request */
export function encodeRequest(into: Buffer, topic: string, messages: readonly Message[]): Buffer {
  let at = writeText(into, 0, TOPIC, topic, byteLength(topic));
  for (const message of messages) {
    // The size is known afterwards; nearly always its length takes two bytes.
    const start = at + 3;
    const size = writeMessage(into, start, message) - start;
    const place = at + 1 + lengthBytes(size);
    if (place !== start) into.copyWithin(place, start, start + size);
    writeHead(into, at, MESSAGE, size);
    at = place + size;
  }
  return into.subarray(0, at);
}

function writeMessage(into: Buffer, start: number, { data, attributes, orderingKey }: Message): number {
  let at = writeHead(into, start, DATA, data.length);
  into.set(data, at);
  at += data.length;
  for (const name in attributes) {
    const value = attributes[name] ?? '';
    const [nameBytes, valueBytes] = [byteLength(name), byteLength(value)];
    const size = 2 + lengthBytes(nameBytes) + nameBytes + lengthBytes(valueBytes) + valueBytes;
    at = writeHead(into, at, ATTRIBUTE, size);
    at = writeText(into, at, MAP_KEY, name, nameBytes);
    at = writeText(into, at, MAP_VALUE, value, valueBytes);
  }
  return orderingKey === '' ? at : writeText(into, at, ORDERING_KEY, orderingKey, byteLength(orderingKey));
}

function writeText(into: Buffer, start: number, tag: number, text: string, bytes: number): number {
  return writeUtf8(into, writeHead(into, start, tag, bytes), text, bytes);
}

/** Writes a tag and a length, as a varint. */
function writeHead(into: Buffer, start: number, tag: number, length: number): number {
  let at = start;
  into[at++] = tag;
  let rest = length;
  for (; rest > 127; rest >>>= 7) into[at++] = (rest & 127) | 128;
  into[at++] = rest;
  return at;
}

function lengthBytes(length: number): number {
  let bytes = 1;
  for (let rest = length; rest > 127; rest >>>= 7) bytes += 1;
  return bytes;
}
