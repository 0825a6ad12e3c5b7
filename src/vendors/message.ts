import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, gzip, gzipSync } from 'node:zlib';
import type { JournalEvent } from '../core/event.ts';
import type { Delivery } from '../core/sink.ts';

/** Bodies up to this size are not worth compressing; consumers of the service's own pipelines expect the same bound. */
const PLAIN_BYTES = 1024;
/** Up to this size gzip takes less time than handing the work to another thread would. */
const INLINE_BYTES = 16 * 1024;
/** Messages compressed in one turn of the event loop, which is the receiver's too: less than a millisecond of it. */
const TURN = 32;

export type Compression = 'auto' | 'always' | 'never';

const FAST = { level: constants.Z_BEST_SPEED };
/** Setting up the usual 256 KiB of state would take longer than compressing a small body. */
const SMALL = { ...FAST, windowBits: 12, memLevel: 5 };
/** The least zlib accepts. */
const SMALLEST_CHUNK = 64;
const compress = promisify(gzip);

/** Whether a body is sent compressed. */
function isZipped({ body }: JournalEvent, compression: Compression): boolean {
  return compression === 'always' || (compression === 'auto' && body.length > PLAIN_BYTES);
}

/** The gzip of a body. Only a large one takes a thread, and so a promise. */
function zip(body: Buffer): Buffer | Promise<Buffer> {
  if (body.length > INLINE_BYTES) return compress(body, FAST);
  // Asking for a buffer far larger than the result would cost more than compressing does.
  return gzipSync(body, { ...SMALL, chunkSize: Math.max(body.length, SMALLEST_CHUNK) });
}

/**
 * The messages for a batch, in its order; other work has its turn between those that are compressed.
 * @param toMessage given the exact bytes of the body, or the gzip of them
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
    if (!isZipped(event, compression)) {
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

/**
 * What a broker's message says of its event beside the body, by the names of the service's own pipelines. Ids that are null
 * leave nothing.
 * @param packing how the body is packed
 * @param fitted makes a text one that the broker takes
 */
export function metadataOf(
  event: JournalEvent,
  packing: Readonly<Record<string, string>>,
  fitted: (text: string) => string,
): Record<string, string> {
  const { team, user, clientUser, handling } = event;
  const metadata: Record<string, string> = { 'event-type': fitted(event.type), ...packing };
  if (user !== null) metadata['user-id'] = fitted(user);
  if (team !== null) metadata['team-id'] = fitted(team);
  if (clientUser !== null) metadata['client-user-id'] = fitted(clientUser);
  metadata['idempotency-key'] = fitted(event.id);
  if (handling.replayId !== undefined) metadata['replay-id'] = fitted(handling.replayId);
  if (handling.claimCheck === true) metadata['claim-check'] = 'true';
  return Object.assign(metadata, handling.trace);
}
