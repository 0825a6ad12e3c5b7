import type { EventData } from '@azure/event-hubs';
import { promisify } from 'node:util';
import { constants, gzip, gzipSync } from 'node:zlib';
import type { JournalEvent } from '../../core/event.ts';
import { traceMetadata } from '../../core/trace.ts';
import type { EventHubsOptions } from './config.ts';

/** Bodies up to this size are not worth compressing; consumers of the service's own pipelines expect the same bound. */
const PLAIN_BYTES = 1024;
/** Up to this size gzip takes less time than handing the work to another thread would. */
const INLINE_BYTES = 16 * 1024;
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
  const plain = compression === 'never' || (compression === 'auto' && body.length <= PLAIN_BYTES);
  if (plain) return { body, properties: propertiesOf(event, false) };
  const properties = propertiesOf(event, true);
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

function propertiesOf(event: JournalEvent, zipped: boolean): Record<string, string> {
  const { team, user, clientUser, handling } = event;
  const properties: Record<string, string> = { 'event-type': event.type.toWellFormed() };
  if (user !== null) properties['user-id'] = user.toWellFormed();
  if (team !== null) properties['team-id'] = team.toWellFormed();
  if (clientUser !== null) properties['client-user-id'] = clientUser.toWellFormed();
  if (zipped) properties['content-encoding'] = 'gzip';
  properties['idempotency-key'] = event.id.toWellFormed();
  if (handling.replayId !== undefined) properties['replay-id'] = handling.replayId.toWellFormed();
  if (handling.claimCheck === true) properties['claim-check'] = 'true';
  if (handling.trace !== undefined) Object.assign(properties, traceMetadata(handling.trace));
  return properties;
}
