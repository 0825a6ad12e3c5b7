import { gunzipSync } from 'node:zlib';
import { describe, expect, it, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { partitionKeyOf, toMessage as toHub } from '../../src/vendors/event-hubs/message.ts';
import { toMessage as toKafka } from '../../src/vendors/kafka/message.ts';
import { toMessages, type Compression } from '../../src/vendors/message.ts';
import { messageOf } from './support.ts';
import { requestBytes, toMessage as toTopic } from '../../src/sinks/pubsub/message.ts';

/** A message as the consumers of any broker see it; an empty key and none are the same there. */
interface Seen {
  readonly key: string;
  readonly meta: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

async function hub(event: JournalEvent, compression: Compression): Promise<Seen> {
  const { body, properties } = await messageOf(event, compression, toHub);
  return { key: partitionKeyOf(event) ?? '', meta: properties, body };
}

async function kafka(event: JournalEvent, compression: Compression): Promise<Seen> {
  const { key, value, headers } = await messageOf(event, compression, toKafka);
  const meta = Object.fromEntries(headers.map(([name, text]) => [name.toString(), text.toString()]));
  return { key: key?.toString() ?? '', meta, body: value ?? Buffer.alloc(0) };
}

const ordered = (...packed: [JournalEvent, Buffer, boolean]) => toTopic(...packed, true);

async function topic(event: JournalEvent, compression: Compression): Promise<Seen> {
  const { data, attributes, orderingKey } = await messageOf(event, compression, ordered);
  return { key: orderingKey, meta: attributes, body: data };
}

describe.each([
  ['Event Hubs', hub, {}, { 'content-encoding': 'gzip' }],
  ['Kafka', kafka, {}, { 'content-encoding': 'gzip' }],
  ['Pub/Sub', topic, { 'blob-type': 'json' }, { 'blob-codec': 'gzip' }],
] as const)('a message for %s', (_, see, always, zipped) => {
  const seen = (changes: Partial<JournalEvent> = {}, compression: Compression = 'auto'): Promise<Seen> =>
    see(contractEvent(1, changes), compression);

  it('carries the exact body and the envelope, as the service’s own pipelines do', async () => {
    expect(await seen()).toEqual({
      key: 'user-1',
      body: contractEvent(1).body,
      meta: {
        'event-type': 'daily.data.meal.created',
        ...always,
        'user-id': 'user-1',
        'team-id': 'team-1',
        'client-user-id': 'customer-patient-123',
        'idempotency-key': 'msg_1',
      },
    });
  });

  it('leaves out ids that are null, and keeps empty ones', async () => {
    const { key, meta } = await seen({ team: null, user: null, clientUser: null });
    expect([key, Object.keys(meta)]).toEqual(['', ['event-type', ...Object.keys(always), 'idempotency-key']]);
    expect(await seen({ user: '', clientUser: '' })).toMatchObject({
      key: '',
      meta: { 'client-user-id': '' },
    });
  });

  it('says when it is part of a replay, or only a claim check', async () => {
    const { meta } = await seen({ handling: { replayId: 'replay-7', claimCheck: true } });
    expect(meta).toMatchObject({ 'replay-id': 'replay-7', 'claim-check': 'true' });
  });

  it('makes text well-formed', async () => {
    expect(await seen({ type: 'a\ud800', user: '\udc00b' })).toMatchObject({
      key: '\ufffdb',
      meta: { 'event-type': 'a\ufffd', 'user-id': '\ufffdb' },
    });
  });

  it.each([
    ['auto', 1024, {}],
    ['auto', 1025, zipped],
    ['auto', 200_000, zipped],
    ['always', 1, zipped],
    ['never', 200_000, {}],
  ] as const)('%s: a body of %i bytes is packed as %j', async (compression, length, packing) => {
    const body = Buffer.alloc(length, 'x');
    const message = await seen({ body }, compression);
    const names = Object.keys(zipped);
    expect(Object.fromEntries(Object.entries(message.meta).filter(([name]) => names.includes(name)))).toEqual(
      packing,
    );
    expect(packing === zipped ? gunzipSync(message.body) : message.body).toEqual(body);
  });

  it('keeps every byte', async () => {
    for (const body of awkwardBodies()) {
      expect(gunzipSync((await seen({ body }, 'always')).body)).toEqual(body);
      expect((await seen({ body }, 'never')).body).toEqual(body);
    }
  });
});

test('a partition key of Event Hubs is cut to what the service allows', () => {
  const user = `${'x'.repeat(127)}🍲`;
  expect(partitionKeyOf(contractEvent(1, { user }))).toBe(`${'x'.repeat(127)}\ufffd`);
});

test('the messages of a batch are in its order, whatever is compressed where', async () => {
  const batch = Array.from({ length: 100 }, (_, i) => ({
    event: contractEvent(i, { body: Buffer.alloc(i % 3 === 0 ? 20_000 : 2000, 32) }),
    destination: null,
  }));
  const messages = await toMessages(batch, 'auto', toHub);
  expect(messages.map(({ properties }) => properties['idempotency-key'])).toEqual(
    batch.map(({ event }) => event.id),
  );
});

describe('a message for Pub/Sub', () => {
  it('has no ordering key without ordering', () => {
    const event = contractEvent(1);
    expect(toTopic(event, event.body, false, false).orderingKey).toBe('');
  });

  it('keeps values within 1024 bytes, and different ones different', async () => {
    const long = (end: string): Promise<Seen> => {
      const text = `${'ü🍲'.repeat(2000)}${end}`;
      return topic(contractEvent(1, { id: text, user: text, type: text }), 'auto');
    };
    const [one, two] = [await long('1'), await long('2')];
    for (const value of [one, two].flatMap(({ key, meta }) => [key, ...Object.values(meta)])) {
      expect(Buffer.byteLength(value)).toBeLessThanOrEqual(1024);
      expect(value.isWellFormed()).toBe(true);
    }
    expect(one.meta['idempotency-key']).toMatch(/^(ü🍲)+ü?~[0-9a-f]{64}$/);
    expect(one.meta['idempotency-key']).not.toBe(two.meta['idempotency-key']);
    expect(one.meta['user-id']).toBe(one.key);
    const id = 'x'.repeat(1024);
    expect(await topic(contractEvent(1, { id }), 'auto')).toMatchObject({ meta: { 'idempotency-key': id } });
  });

  it('knows how large a request will be, never below the truth', () => {
    const event = contractEvent(1, { type: 'x'.repeat(5000), user: 'ü'.repeat(5000), id: 'y'.repeat(5000) });
    const message = ordered(event, event.body, false);
    const texts = ['topic', message.orderingKey, ...Object.entries(message.attributes).flat()];
    const payload = texts.reduce((sum, text) => sum + Buffer.byteLength(text), event.body.length);
    const bytes = requestBytes('topic', message);
    expect(bytes).toBeGreaterThan(payload);
    expect(bytes - payload).toBeLessThan(150);
  });
});
