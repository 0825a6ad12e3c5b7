import type { EventData } from '@azure/event-hubs';
import { promisify } from 'node:util';
import { constants, gzip, gzipSync } from 'node:zlib';
import type { JournalEvent } from '../../core/event.ts';
import { INLINE_BYTES, isZipped, metadataOf } from '../message.ts';
import type { EventHubsOptions } from './config.ts';

/** The service's limit for a partition key, in characters. */
const KEY_LENGTH = 128;

/** The least zlib accepts. */
const SMALLEST_CHUNK = 64;
const FAST = { level: constants.Z_BEST_SPEED };
const compress = promisify(gzip);

/**
 * The message for one event: its exact bytes, or the gzip of them, and its envelope as properties. Ids that are null
 * leave no property.
 */
export async function toMessage(
  event: JournalEvent,
  compression: EventHubsOptions['compression'],
): Promise<EventData> {
  const { body } = event;
  if (!isZipped(event, compression)) return { body, properties: metadataOf(event, {}, wellFormed) };
  const properties = metadataOf(event, { 'content-encoding': 'gzip' }, wellFormed);
  if (body.length <= INLINE_BYTES) {
    // Asking for a buffer far larger than the result would cost more than compressing does.
    return {
      body: gzipSync(body, { ...FAST, chunkSize: Math.max(body.length, SMALLEST_CHUNK) }),
      properties,
    };
  }
  return { body: await compress(body, FAST), properties };
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
