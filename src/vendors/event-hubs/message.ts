import type { JournalEvent } from '../../core/event.ts';
import { metadataOf } from '../message.ts';

/** What is sent of one event. */
export interface Message {
  readonly body: Buffer;
  readonly properties: Readonly<Record<string, string>>;
}

/** The service's limit for a partition key, in characters. */
const KEY_LENGTH = 128;

const PLAIN = {};
const ZIPPED = { 'content-encoding': 'gzip' };

/** The message for one event, with its envelope as properties. */
export function toMessage(event: JournalEvent, body: Buffer, isZipped: boolean): Message {
  return { body, properties: metadataOf(event, isZipped ? ZIPPED : PLAIN, wellFormed) };
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
