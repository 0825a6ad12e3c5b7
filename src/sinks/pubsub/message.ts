import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';
import { metadataOf } from '../../vendors/message.ts';

/** One message of a publish request. */
export interface Message {
  readonly data: Buffer;
  readonly attributes: Readonly<Record<string, string>>;
  /** Empty for none. */
  readonly orderingKey: string;
}

/** The service's limit for an attribute's value and for an ordering key, bytes. */
const VALUE_BYTES = 1024;

const PLAIN = { 'blob-type': 'json' };
const ZIPPED = { ...PLAIN, 'blob-codec': 'gzip' };

/**
 * The message for one event, with its envelope as attributes.
 * @param ordering whether messages of one user are handed to subscribers in the order of their publishing
 */
export function toMessage(event: JournalEvent, data: Buffer, isZipped: boolean, ordering: boolean): Message {
  const attributes = metadataOf(event, isZipped ? ZIPPED : PLAIN, fitted);
  return { data, attributes, orderingKey: ordering && event.user !== null ? fitted(event.user) : '' };
}

/** Bytes of a publish request with this one message, hardly more than it really takes. */
export function requestBytes(topic: string, { data, attributes, orderingKey }: Message): number {
  let bytes = topic.length + data.length + Buffer.byteLength(orderingKey) + FRAMING;
  for (const [name, value] of Object.entries(attributes)) {
    bytes += name.length + Buffer.byteLength(value) + ATTRIBUTE_FRAMING;
  }
  return bytes;
}

/** Tags and lengths that protobuf adds: to the request with one message, and to an attribute. */
const FRAMING = 32;
const ATTRIBUTE_FRAMING = 12;

/**
 * The text, as UTF-8 that every reader takes, within the service's limit. What is too long is cut and ends in its hash,
 * so that two long values that begin alike stay two values: an idempotency key must never say that they are the same.
 */
function fitted(text: string): string {
  const value = text.toWellFormed();
  // A UTF-16 unit never takes more than three bytes, so short texts need no counting.
  if (value.length * 3 <= VALUE_BYTES || Buffer.byteLength(value) <= VALUE_BYTES) return value;
  const digest = hash('sha256', value, 'hex');
  const { read } = new TextEncoder().encodeInto(value, new Uint8Array(VALUE_BYTES - digest.length - 1));
  return `${value.slice(0, read)}~${digest}`;
}
