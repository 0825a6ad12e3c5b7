import { EventHubProducerClient, type EventDataBatch } from '@azure/event-hubs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Batch, roomFor } from '../../src/vendors/event-hubs/batch.ts';
import type { Message } from '../../src/vendors/event-hubs/message.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';

const MOST = 1_000_000;
let peer: AmqpPeer;
let client: EventHubProducerClient;

beforeAll(async () => {
  peer = await startAmqpPeer({ hubs: ['events'] });
  client = new EventHubProducerClient(peer.connectionString, 'events');
});

afterAll(async () => {
  await client.close();
  await peer.stop();
});

interface Made {
  readonly bytes: Buffer;
  readonly count: number;
}

/** What the SDK calls when it sends a batch. */
type Sendable = EventDataBatch & { readonly _generateMessage: () => Buffer };

function made(batch: EventDataBatch): Made {
  return { bytes: (batch as Sendable)._generateMessage(), count: batch.count };
}

function byUs(key: string | null, messages: readonly Message[], most: number): Made {
  // What a buffer held before must not show.
  const batch = new Batch(key, most, Buffer.alloc(roomFor(key, most, messages), 0xff));
  for (const message of messages) if (!batch.tryAdd(message)) break;
  return made(batch);
}

async function bySdk(
  key: string | null,
  messages: readonly Message[],
  maxSizeInBytes: number,
): Promise<Made> {
  const partitionKey = key === null ? {} : { partitionKey: key };
  const batch = await client.createBatch({ ...partitionKey, maxSizeInBytes });
  for (const message of messages) if (!batch.tryAdd(message)) break;
  return made(batch);
}

/** Ours and the SDK's; bytes of a batch that holds nothing are never sent. */
async function both(key: string | null, messages: readonly Message[], most = MOST): Promise<[Made, Made]> {
  const pair: [Made, Made] = [byUs(key, messages, most), await bySdk(key, messages, most)];
  return pair.map(({ bytes, count }) => ({ count, bytes: count === 0 ? Buffer.alloc(0) : bytes })) as [
    Made,
    Made,
  ];
}

const message = (size: number, properties: Record<string, string> = {}): Message => ({
  body: Buffer.alloc(size, size),
  properties,
});
const ENVELOPE = { 'event-type': 'daily.data.meal.created', 'idempotency-key': 'msg_1' };

describe('a batch has the bytes that the SDK would send', () => {
  test.each([
    ['without a key', null, [message(1200, ENVELOPE)]],
    ['with a key', 'user-1', [message(1200, ENVELOPE), message(3, ENVELOPE)]],
    ['a key that is long and not ASCII', '用户'.repeat(64), [message(5, ENVELOPE)]],
    ['an empty body, and no properties', 'user-1', [message(0), message(0, { 'user-id': '' })]],
    ['texts that are not ASCII', null, [message(5, { 'user-id': 'ü🍲\0', 'team-id': '用'.repeat(400) })]],
    ['long texts', 'u', [message(5, { a: 'x'.repeat(255), b: 'x'.repeat(256), c: 'ü'.repeat(128) })]],
    ['many messages', 'u', Array.from({ length: 300 }, (_, n) => message(n * 7, { n: String(n) }))],
  ] as [string, string | null, Message[]][])('%s', async (_, key, messages) => {
    const [ours, theirs] = await both(key, messages);
    expect(ours).toEqual(theirs);
  });

  test('of any length, where a length takes more bytes too', async () => {
    for (let size = 0; size < 300; size += 1) {
      const [ours, theirs] = await both('user-1', [message(size), message(1)]);
      expect(ours, `${size} bytes`).toEqual(theirs);
    }
  });
});

describe('a batch takes as much as the SDK would', () => {
  const messages = Array.from({ length: 40 }, (_, n) => message(n % 3 === 0 ? 40 : 400, ENVELOPE));

  test('and no byte more', async () => {
    for (let most = 5000; most < 5700; most += 7) {
      const [ours, theirs] = await both('user-1', messages, most);
      expect(ours, `at most ${most}`).toEqual(theirs);
    }
  });

  test('also when no message has room', async () => {
    const [ours, theirs] = await both('user-1', [message(5000, ENVELOPE)], 4096);
    expect(ours).toEqual(theirs);
    expect(ours.count).toBe(0);
  });
});
