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

/** The message for one event, with its envelope as attributes. @param ordering whether the user id is the ordering key */
export function toMessage(event: JournalEvent, data: Buffer, isZipped: boolean, ordering: boolean): Message {
  const attributes = metadataOf(event, isZipped ? ZIPPED : PLAIN, attributeText);
  return { data, attributes, orderingKey: ordering && event.user !== null ? attributeText(event.user) : '' };
}

/** Bytes of a publish request with this one message: an upper bound, hardly above the real size. */
export function requestBytes(topic: string, { data, attributes, orderingKey }: Message): number {
  let bytes = topic.length + data.length + Buffer.byteLength(orderingKey) + FRAMING;
  for (const [name, value] of Object.entries(attributes)) {
    bytes += name.length + Buffer.byteLength(value) + ATTRIBUTE_FRAMING;
  }
  return bytes;
}

/** Bytes of tags and lengths that protobuf adds: to the request with one message, and to an attribute. */
const FRAMING = 32;
const ATTRIBUTE_FRAMING = 12;

/**
 * The text as valid UTF-8 within the service's limit. A longer one is cut and ends in its hash: two different ids must never get one
 * idempotency key.
 */
function attributeText(text: string): string {
  const value = text.toWellFormed();
  // A UTF-16 unit takes at most three bytes, so short texts need no counting.
  if (value.length * 3 <= VALUE_BYTES || Buffer.byteLength(value) <= VALUE_BYTES) return value;
  const digest = hash('sha256', value, 'hex');
  const { read } = new TextEncoder().encodeInto(value, new Uint8Array(VALUE_BYTES - digest.length - 1));
  return `${value.slice(0, read)}~${digest}`;
}
