import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { toMessages } from '../../src/sinks/message.ts';
import { requestBytes, toMessage } from '../../src/sinks/pubsub/message.ts';

const AUTO = { compression: 'auto', ordering: false } as const;
const ORDERED = { compression: 'auto', ordering: true } as const;

const long = (end: string): string => `${'ü🍲'.repeat(2000)}${end}`;
const allLong = (end: string): JournalEvent =>
  contractEvent(1, { id: long(end), user: long(end), type: long(end) });

describe('a message', () => {
  it('carries the exact body and the envelope', async () => {
    const event = contractEvent(1);
    expect(await toMessage(event, AUTO)).toEqual({
      data: event.body,
      attributes: {
        'event-type': 'daily.data.meal.created',
        'blob-type': 'json',
        'idempotency-key': 'msg_1',
        'user-id': 'user-1',
        'team-id': 'team-1',
        'client-user-id': 'customer-patient-123',
      },
      orderingKey: '',
    });
  });

  it('has no attribute for an id that is null', async () => {
    const { attributes, orderingKey } = await toMessage(
      contractEvent(1, { user: null, team: null, clientUser: null }),
      ORDERED,
    );
    expect(Object.keys(attributes)).toEqual(['event-type', 'blob-type', 'idempotency-key']);
    expect(orderingKey).toBe('');
  });

  it('has the user as ordering key when ordering is on', async () => {
    expect(await toMessage(contractEvent(1), ORDERED)).toMatchObject({ orderingKey: 'user-1' });
  });

  it('marks replays and claim checks', async () => {
    const handling = { replayId: 'replay-7', claimCheck: true } as const;
    const { attributes } = await toMessage(contractEvent(1, { handling }), AUTO);
    expect(attributes).toMatchObject({ 'replay-id': 'replay-7', 'claim-check': 'true' });
  });

  it.each([
    ['auto', 1024, false],
    ['auto', 1025, true],
    ['auto', 200_000, true],
    ['always', 10, true],
    ['never', 200_000, false],
  ] as const)('compression %s, %i bytes: compressed %s', async (compression, size, zipped) => {
    const body = Buffer.from(`"${'x'.repeat(size - 2)}"`);
    const { data, attributes } = await toMessage(contractEvent(1, { body }), {
      compression,
      ordering: false,
    });
    expect(attributes['blob-codec']).toBe(zipped ? 'gzip' : undefined);
    expect((zipped ? gunzipSync(data) : data).equals(body)).toBe(true);
  });

  it('keeps values within 1024 bytes, and different ones different', async () => {
    const one = await toMessage(allLong('1'), ORDERED);
    const two = await toMessage(allLong('2'), ORDERED);
    for (const message of [one, two]) {
      for (const value of [message.orderingKey, ...Object.values(message.attributes)]) {
        expect(Buffer.byteLength(value)).toBeLessThanOrEqual(1024);
        expect(value.isWellFormed()).toBe(true);
      }
    }
    expect(one.attributes['idempotency-key']).toMatch(/^(ü🍲)+ü?~[0-9a-f]{64}$/);
    expect(one.attributes['idempotency-key']).not.toBe(two.attributes['idempotency-key']);
    expect(one.attributes['user-id']).toBe(one.orderingKey);
    const exact = 'x'.repeat(1024);
    expect(await toMessage(contractEvent(1, { id: exact }), AUTO)).toMatchObject({
      attributes: { 'idempotency-key': exact },
    });
  });

  it('mends text that is not Unicode', async () => {
    expect(await toMessage(contractEvent(1, { user: 'a\ud800b' }), ORDERED)).toMatchObject({
      orderingKey: 'a\ufffdb',
    });
  });

  it('keeps the order of a batch, whatever is compressed where', async () => {
    const batch = Array.from({ length: 100 }, (_, i) => ({
      event: contractEvent(i, { body: Buffer.alloc(i % 3 === 0 ? 20_000 : 2000, 32) }),
      destination: null,
    }));
    const messages = await toMessages(batch, 'auto', (event) => toMessage(event, AUTO));
    const ids = messages.map(({ attributes }) => attributes['idempotency-key']);
    expect(ids).toEqual(batch.map(({ event }) => event.id));
  });

  it('knows how large a request will be, never below the truth', async () => {
    const event = contractEvent(1, { type: 'x'.repeat(5000), user: 'ü'.repeat(5000), id: 'y'.repeat(5000) });
    const message = await toMessage(event, ORDERED);
    const attributes = Object.entries(message.attributes).reduce(
      (sum, [name, value]) => sum + name.length + Buffer.byteLength(value),
      0,
    );
    const payload = event.body.length + attributes + Buffer.byteLength(message.orderingKey) + 'topic'.length;
    const bytes = requestBytes('topic', message);
    expect(bytes).toBeGreaterThan(payload);
    expect(bytes - payload).toBeLessThan(150);
  });
});
