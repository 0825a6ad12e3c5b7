import type { JournalEvent } from '../../core/event.ts';
import { propertiesOf } from '../message.ts';

export interface Message {
  readonly body: Buffer;
  readonly properties: Readonly<Record<string, string>>;
}

/** The service's limit for a partition key, in characters. */
const KEY_LENGTH = 128;

/** The message for one event, with its envelope as properties. */
export function toMessage(event: JournalEvent, body: Buffer, isZipped: boolean): Message {
  return { body, properties: propertiesOf(event, isZipped) };
}

/**
 * The key of a user's events, which stay in order, in one partition; null leaves the partition to the service. A key that is
 * too long for the service is cut: users with the same beginning then share a partition, which does no harm.
 */
export function partitionKeyOf({ user }: JournalEvent): string | null {
  if (user === null || user === '') return null;
  return user.slice(0, KEY_LENGTH).toWellFormed();
}
