import type { JournalEvent } from '../../core/event.ts';
import { isZipped, metadataOf, zip, type Compression } from '../message.ts';

/** What is sent of one event. */
export interface Message {
  readonly body: Buffer;
  readonly properties: Readonly<Record<string, string>>;
}

/** The service's limit for a partition key, in characters. */
const KEY_LENGTH = 128;

const PLAIN = {};
const ZIPPED = { 'content-encoding': 'gzip' };

/**
 * The message for one event: its exact bytes, or the gzip of them, and its envelope as properties. Ids that are null
 * leave no property.
 */
export function toMessage(event: JournalEvent, compression: Compression): Message | Promise<Message> {
  const { body } = event;
  const zipped = isZipped(event, compression);
  const properties = metadataOf(event, zipped ? ZIPPED : PLAIN, wellFormed);
  if (!zipped) return { body, properties };
  const packed = zip(body);
  return packed instanceof Promise
    ? packed.then((bytes) => ({ body: bytes, properties }))
    : { body: packed, properties };
}

/**
 * Events of one key stay in order, in one partition. A key that is too long for the service is cut: whoever shares the
 * rest of it shares a partition, which does no harm. `null` leaves the partition to the service.
 */
export function partitionKeyOf({ user }: JournalEvent): string | null {
  if (user === null || user === '') return null;
  return user.slice(0, KEY_LENGTH).toWellFormed();
}

function wellFormed(text: string): string {
  return text.toWellFormed();
}
