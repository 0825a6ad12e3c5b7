import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, gzip, gzipSync } from 'node:zlib';
import type { JournalEvent } from '../core/event.ts';
import type { Delivery } from '../core/sink.ts';

/** Larger bodies are compressed; consumers of the service's own pipelines expect this bound. */
const PLAIN_BYTES = 1024;
/** Up to this size gzip takes less time than passing the work to another thread. */
const INLINE_BYTES = 16 * 1024;
/** Messages compressed in one turn of the event loop, which also receives: less than a millisecond of it. */
const TURN = 32;

export type Compression = 'auto' | 'always' | 'never';

const FAST = { level: constants.Z_BEST_SPEED };
/** The default, 256 KiB of state, takes longer to set up than a small body to compress. */
const SMALL = { ...FAST, windowBits: 12, memLevel: 5 };
/** The smallest that zlib accepts. */
const SMALLEST_CHUNK = 64;
const compress = promisify(gzip);

/** The gzip of a body; a promise for a large one, which another thread compresses. */
function zip(body: Buffer): Buffer | Promise<Buffer> {
  if (body.length > INLINE_BYTES) return compress(body, FAST);
  // A buffer far larger than the result would take longer than compressing.
  return gzipSync(body, { ...SMALL, chunkSize: Math.max(body.length, SMALLEST_CHUNK) });
}

/**
 * The messages for a batch, in its order. Gives way to other work between those that are compressed.
 * @param toMessage called with the exact bytes of the body, or their gzip
 */
export async function toMessages<T>(
  batch: readonly Delivery[],
  compression: Compression,
  toMessage: (event: JournalEvent, body: Buffer, isZipped: boolean) => T,
): Promise<T[]> {
  const messages: T[] = [];
  const large: Promise<void>[] = [];
  let compressed = 0;
  for (const [index, { event }] of batch.entries()) {
    const isZipped = compression === 'always' || (compression === 'auto' && event.body.length > PLAIN_BYTES);
    if (!isZipped) {
      messages[index] = toMessage(event, event.body, false);
      continue;
    }
    compressed += 1;
    if (compressed > TURN) {
      compressed = 1;
      await setImmediate();
    }
    const body = zip(event.body);
    const make = (packed: Buffer): void => void (messages[index] = toMessage(event, packed, true));
    if (body instanceof Promise) large.push(body.then(make));
    else make(body);
  }
  await Promise.all(large);
  return messages;
}

/** The metadata of a message in Kafka and Event Hubs. */
export function propertiesOf(event: JournalEvent, isZipped: boolean): Record<string, string> {
  return metadataOf(event, isZipped ? ZIPPED : PLAIN, (text) => text.toWellFormed());
}

const PLAIN = {};
const ZIPPED = { 'content-encoding': 'gzip' };

/**
 * The metadata of a broker's message, by the names of the service's own pipelines. Ids that are null are left out.
 * @param packing how the body is packed
 * @param valid changes a text to one that the broker accepts
 */
export function metadataOf(
  event: JournalEvent,
  packing: Readonly<Record<string, string>>,
  valid: (text: string) => string,
): Record<string, string> {
  const { team, user, clientUser, handling } = event;
  const metadata: Record<string, string> = { 'event-type': valid(event.type), ...packing };
  if (user !== null) metadata['user-id'] = valid(user);
  if (team !== null) metadata['team-id'] = valid(team);
  if (clientUser !== null) metadata['client-user-id'] = valid(clientUser);
  metadata['idempotency-key'] = valid(event.id);
  if (handling.replayId !== undefined) metadata['replay-id'] = valid(handling.replayId);
  if (handling.claimCheck === true) metadata['claim-check'] = 'true';
  return Object.assign(metadata, handling.trace);
}
