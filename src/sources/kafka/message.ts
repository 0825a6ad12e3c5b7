import type { Message } from '@platformatic/kafka';
import type { IncomingMessage } from '../../core/ingest.ts';
import { encodingIn } from '../take.ts';

type Received = Pick<Message, 'value' | 'headerEntries' | 'timestamp'>;

/**
 * The record as it lies in the topic: still compressed by its publisher, with its headers. A missing value is empty.
 * @param now milliseconds since the epoch, for a record whose publisher gave it no time, or one that is still to come
 */
export function toIncoming({ value, headerEntries, timestamp }: Received, now: number): IncomingMessage {
  const properties = Object.fromEntries(
    headerEntries.map(([name, text]) => [String(name ?? ''), String(text ?? '')]),
  );
  return {
    body: value ?? Buffer.alloc(0),
    encoding: encodingIn(properties, 'content-encoding'),
    properties,
    receivedAt: timestamp > 0n && timestamp <= BigInt(now) ? Number(timestamp) : now,
  };
}
