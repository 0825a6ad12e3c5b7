import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { partitionKeyOf, toMessage } from '../../src/sinks/event-hubs/message.ts';

const properties = async (changes: Partial<JournalEvent>): Promise<Record<string, unknown>> => {
  return { ...(await toMessage(contractEvent(1, changes), 'never')).properties };
};

describe('a message for Event Hubs', () => {
  it('carries the envelope as properties, as the service’s own pipelines do', async () => {
    expect(await properties({})).toEqual({
      'event-type': 'daily.data.meal.created',
      'user-id': 'user-1',
      'team-id': 'team-1',
      'client-user-id': 'customer-patient-123',
      'idempotency-key': 'msg_1',
    });
  });

  it('leaves out ids that are null, and keeps empty ones', async () => {
    const without = await properties({ team: null, user: null, clientUser: null });
    expect(Object.keys(without)).toEqual(['event-type', 'idempotency-key']);
    expect(await properties({ clientUser: '' })).toHaveProperty('client-user-id', '');
  });

  it('says when it is part of a replay, or only a claim check', async () => {
    const handling = { replayId: 'replay-7', claimCheck: true };
    expect(await properties({ handling })).toMatchObject({ 'replay-id': 'replay-7', 'claim-check': 'true' });
  });

  it('makes text well-formed', async () => {
    expect(await properties({ type: 'a\ud800', user: '\udc00b' })).toMatchObject({
      'event-type': 'a\ufffd',
      'user-id': '\ufffdb',
    });
  });

  it.each([
    ['auto', 1024, undefined],
    ['auto', 1025, 'gzip'],
    ['auto', 16 * 1024 + 1, 'gzip'],
    ['always', 1, 'gzip'],
    ['never', 100_000, undefined],
  ] as const)('%s: a body of %i bytes has the content encoding %s', async (compression, length, encoding) => {
    const body = Buffer.alloc(length, 'x');
    const message = await toMessage(contractEvent(1, { body }), compression);
    expect(message.properties['content-encoding']).toBe(encoding);
    const bytes = message.body;
    expect(encoding === 'gzip' ? gunzipSync(bytes) : bytes).toEqual(body);
  });

  it.each(['always', 'never'] as const)('%s: keeps every byte', async (compression) => {
    for (const body of awkwardBodies()) {
      const { body: sent } = await toMessage(contractEvent(1, { body }), compression);
      expect(compression === 'always' ? gunzipSync(sent) : sent).toEqual(body);
    }
  });

  it('takes the user for partition key, cut to what the service allows', () => {
    expect(partitionKeyOf(contractEvent(1, { user: 'u' }))).toBe('u');
    expect(partitionKeyOf(contractEvent(1, { user: null }))).toBeNull();
    expect(partitionKeyOf(contractEvent(1, { user: '' }))).toBeNull();
    const long = partitionKeyOf(contractEvent(1, { user: `${'x'.repeat(127)}🍲` }));
    expect(long).toBe(`${'x'.repeat(127)}\ufffd`);
  });
});
