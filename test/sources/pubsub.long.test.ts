import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import type { IncomingMessage } from '../../src/core/incoming.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { toMessage } from '../../src/sinks/pubsub/message.ts';
import { decodeBody } from '../../src/sources/take.ts';
import { toIncoming } from '../../src/sources/pubsub/message.ts';
import { createSource, parseOptions } from '../../src/sources/pubsub/source.ts';
import { PubSubAdmin } from '../support/pubsub-admin.ts';
import { describeOnEmulator } from '../support/pubsub-emulator.ts';
import { PROJECT, startPubSubPeer, type PubSubPeer } from '../support/pubsub-peer/peer.ts';
import { until, within } from '../support/until.ts';
import { makeContext } from '../sinks/support.ts';
import { idsOf, range, startReading, type Reading, type Take } from './reading.ts';

const CHECKPOINTS = { load: () => Promise.resolve(null), save: () => Promise.resolve() };

async function read(
  endpoint: string,
  subscription: string,
  take?: Take,
  options: object = {},
): Promise<Reading> {
  const parsed = parseOptions({ project: PROJECT, subscription, endpoint, timeout: '5s', ...options });
  const source = createSource(parsed, { ...makeContext(), name: 'pipeline', checkpoints: CHECKPOINTS });
  return startReading(source, take);
}

const publish = async (admin: PubSubAdmin, topic: string, from: number, to: number): Promise<void> => {
  const options = { compression: 'auto', ordering: true } as const;
  for (let n = from; n < to; n += 1) {
    const body = n % 2 === 0 ? {} : { body: Buffer.from(`{"long":"${'x'.repeat(2000)}${n}"}`) };
    await admin.publish(topic, await toMessage(contractEvent(n, body), options));
  }
};

/** What holds wherever a subscription is read. */
function behaviour(where: () => string): void {
  /** A topic with an ordered subscription of the same name. */
  const make = async (): Promise<{ endpoint: string; name: string; admin: PubSubAdmin }> => {
    const admin = new PubSubAdmin(where());
    onTestFinished(() => admin.close());
    const name = `events-${randomUUID()}`;
    await admin.create(name, true);
    return { endpoint: where(), name, admin };
  };

  it('hands over bytes, encoding, attributes and time as they lie there, each key in order', async () => {
    const { endpoint, name, admin } = await make();
    await publish(admin, name, 0, 40);
    const { messages } = await read(endpoint, name);
    await until('40 messages', () => messages.length === 40);
    expect(new Set(idsOf(messages))).toEqual(range(0, 40));
    for (const { body, encoding, properties, receivedAt } of messages) {
      const n = Number(properties['idempotency-key']?.slice('msg_'.length));
      expect(encoding).toBe(n % 2 === 0 ? null : 'gzip');
      const decoded = await decodeBody(body, encoding, 10_000);
      const expected =
        n % 2 === 0 ? contractEvent(n).body : Buffer.from(`{"long":"${'x'.repeat(2000)}${n}"}`);
      expect(decoded).toEqual({ ok: true, body: expected });
      expect(properties).toMatchObject({ 'event-type': 'daily.data.meal.created', 'blob-type': 'json' });
      expect(receivedAt).toBeGreaterThan(0);
    }
    for (const user of new Set(messages.map(({ properties }) => properties['user-id']))) {
      const ids = idsOf(messages.filter(({ properties }) => properties['user-id'] === user));
      expect(ids).toEqual(ids.toSorted((a, b) => Number(a.slice(4)) - Number(b.slice(4))));
    }
  });

  it('takes older publishers’ underscores, and hands an unknown encoding on by its name', async () => {
    const { endpoint, name, admin } = await make();
    const data = Buffer.from('{}');
    await admin.publish(name, { data, attributes: { blob_codec: 'GZIP' } });
    await admin.publish(name, { data, attributes: { 'blob-codec': 'zstd' } });
    await admin.publish(name, { data, attributes: { 'blob-codec': '' } });
    const { messages } = await read(endpoint, name);
    await until('3 messages', () => messages.length === 3);
    expect(messages.map(({ encoding }) => encoding ?? 'none').toSorted()).toEqual(['gzip', 'none', 'zstd']);
    expect(await decodeBody(data, 'zstd', 100)).toMatchObject({ ok: false, code: 'encoding_unknown' });
  });

  it('does not get again what was taken, and continues with what comes next', async () => {
    const { endpoint, name, admin } = await make();
    await publish(admin, name, 0, 20);
    const first = await read(endpoint, name);
    await until('20 messages', () => first.messages.length === 20);
    await first.stop();
    await publish(admin, name, 20, 35);
    const second = await read(endpoint, name);
    await until('15 messages', () => second.messages.length === 15);
    await second.stop();
    expect(new Set(idsOf(second.messages))).toEqual(range(20, 35));
    expect(await admin.drain(name)).toEqual([]);
  });

  it('ends when a batch is not taken, acknowledges nothing of it, and gets it again', async () => {
    const { endpoint, name, admin } = await make();
    await publish(admin, name, 0, 30);
    const first = await read(endpoint, name, () => Promise.reject(new Error('journal is full')));
    expect(await within('the end', first.ended)).toMatchObject({ message: 'journal is full' });
    await first.stop();
    const second = await read(endpoint, name);
    await until('every message', () => new Set(idsOf(second.messages)).size === 30);
    expect(new Set(idsOf(second.messages))).toEqual(range(0, 30));
  });

  it('is not given more than it may hold, and waits for the batch on its way when it stops', async () => {
    const { endpoint, name, admin } = await make();
    await publish(admin, name, 0, 50);
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const sizes: number[] = [];
    const take = (batch: readonly IncomingMessage[]): Promise<void> => {
      sizes.push(batch.length);
      asked.resolve();
      return gate.promise;
    };
    const first = await read(endpoint, name, take, { held: { messages: 10 } });
    await within('the first batch', asked.promise);
    let over = false;
    const stopped = first.stop().then(() => (over = true));
    // A whole conversation with the service later it still waits.
    expect(await admin.drain((await make()).name)).toEqual([]);
    expect(over).toBe(false);
    gate.resolve();
    await stopped;
    expect(sizes).toHaveLength(1);
    expect(sizes[0]).toBeLessThanOrEqual(10);
    expect(first.messages).toHaveLength(sizes[0] ?? 0);
    const second = await read(endpoint, name, undefined, { held: { messages: 10 } });
    await until('the rest', () => second.messages.length >= 50 - first.messages.length);
    await second.stop();
    expect(new Set([...idsOf(first.messages), ...idsOf(second.messages)])).toEqual(range(0, 50));
  });

  it('says which subscription does not exist', async () => {
    const { endpoint } = await make();
    await expect(read(endpoint, 'nowhere')).rejects.toThrow(/^subscription nowhere: .*NOT_FOUND/);
  });
}

describe('pubsub source on the peer', () => {
  let peer: PubSubPeer;
  beforeAll(async () => {
    peer = await startPubSubPeer();
  });
  afterAll(() => peer.stop());
  behaviour(() => peer.endpoint);

  it('loses nothing when the connection is cut and the service is away for a while', async () => {
    const away = await startPubSubPeer({ topics: ['events'], subscriptions: { reader: 'events' } });
    const admin = new PubSubAdmin(away.endpoint);
    onTestFinished(async () => {
      await admin.close();
      await away.stop();
    });
    const send = async (from: number, to: number): Promise<void> => {
      for (let n = from; n < to; n += 1)
        await admin.publish('events', { attributes: { 'idempotency-key': `msg_${n}` } });
    };
    const { messages } = await read(away.endpoint, 'reader');
    await send(0, 20);
    await until('20 messages', () => messages.length >= 20);
    away.cut();
    await send(20, 40);
    await until('40 messages', () => new Set(idsOf(messages)).size === 40);
    await away.stop();
    await away.restart();
    await send(40, 60);
    await until('60 messages', () => new Set(idsOf(messages)).size === 60);
    await until('the acknowledgements', () => away.subscription('reader').unacknowledged === 0);
    expect(new Set(idsOf(messages))).toEqual(range(0, 60));
  });

  it('gives up opening a service that says nothing', async () => {
    const away = await startPubSubPeer();
    await away.stop();
    await expect(read(away.endpoint, 'reader', undefined, { timeout: '300ms' })).rejects.toThrow(
      /^subscription reader: /,
    );
  });
});

describeOnEmulator('pubsub source on the emulator', ({ endpoint }) => behaviour(() => endpoint));

test('a message is as old as its publishing', () => {
  const publishTime = new Date(1_795_230_902_123);
  const message = toIncoming({ data: Buffer.from('{}'), attributes: { a: 'b' }, publishTime });
  expect(message).toEqual({
    body: Buffer.from('{}'),
    encoding: null,
    properties: { a: 'b' },
    receivedAt: 1_795_230_902_123,
  });
});

describe('pubsub source options', () => {
  it('has defaults', () => {
    expect(parseOptions({ project: 'acme', subscription: 'reader' })).toEqual({
      project: 'acme',
      subscription: 'reader',
      endpoint: null,
      held: { messages: 1000, bytes: 64 * 2 ** 20 },
      timeout: 15_000,
    });
  });

  it.each([
    [{ project: 'acme' }, 'subscription'],
    [{ project: 'acme', subscription: 'a b c' }, 'subscription'],
    [{ subscription: 'reader' }, 'project'],
    [{ project: 'acme', subscription: 'reader', held: { messages: 0 } }, 'held.messages'],
    [{ project: 'acme', subscription: 'reader', topic: 'x' }, 'topic'],
  ])('%j names %s', (options, key) => {
    expect(() => parseOptions(options)).toThrow(key);
  });
});
