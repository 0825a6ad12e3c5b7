import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import type { IncomingMessage } from '../../src/core/ingest.ts';
import type { JournalEvent } from '../../src/core/event.ts';
import type { Source } from '../../src/core/source.ts';
import { toMessage } from '../../src/sinks/pubsub/message.ts';
import { decodeBody } from '../../src/sources/take.ts';
import { createSource, parseOptions, toIncoming } from '../../src/sources/pubsub/source.ts';
import { PubSubAdmin } from '../support/pubsub-admin.ts';
import { describeOnEmulator } from '../support/pubsub-emulator.ts';
import { PROJECT, startPubSubPeer, type PubSubPeer } from '../support/pubsub-peer/peer.ts';
import { until, within } from '../support/until.ts';
import { makeContext, messageOf } from '../sinks/support.ts';
import { events, sourceContract } from './contract.ts';
import { idsOf, range, startReading } from './reading.ts';

function sourceOf(endpoint: string, subscription: string, options: object = {}): Source {
  const parsed = parseOptions({ project: PROJECT, subscription, endpoint, timeout: '5s', ...options });
  const checkpoints = { load: () => Promise.resolve(null), save: () => Promise.resolve() };
  return createSource(parsed, { ...makeContext(), name: 'pipeline', checkpoints });
}

const publish = async (admin: PubSubAdmin, topic: string, batch: readonly JournalEvent[]): Promise<void> => {
  for (const event of batch)
    await admin.publish(topic, await messageOf(event, 'auto', (...packed) => toMessage(...packed, true)));
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

  sourceContract(async () => {
    const { endpoint, name, admin } = await make();
    return {
      source: () => sourceOf(endpoint, name),
      publish: (batch) => publish(admin, name, batch),
    };
  });

  it('takes older publishers’ underscores, and hands an unknown encoding on by its name', async () => {
    const { endpoint, name, admin } = await make();
    const data = Buffer.from('{}');
    await admin.publish(name, { data, attributes: { blob_codec: 'GZIP' } });
    await admin.publish(name, { data, attributes: { 'blob-codec': 'zstd' } });
    await admin.publish(name, { data, attributes: { 'blob-codec': '' } });
    const { messages } = await startReading(sourceOf(endpoint, name));
    await until('3 messages', () => messages.length === 3);
    expect(messages.map(({ encoding }) => encoding ?? 'none').toSorted()).toEqual(['gzip', 'none', 'zstd']);
    expect(await decodeBody(data, 'zstd', 100)).toMatchObject({ ok: false, code: 'encoding_unknown' });
  });

  it('acknowledges what was taken', async () => {
    const { endpoint, name, admin } = await make();
    await publish(admin, name, events(0, 20));
    const { messages, stop } = await startReading(sourceOf(endpoint, name));
    await until('20 messages', () => messages.length === 20);
    await stop();
    expect(await admin.drain(name)).toEqual([]);
  });

  it('is not given more than it may hold, and waits for the batch on its way when it stops', async () => {
    const { endpoint, name, admin } = await make();
    await publish(admin, name, events(0, 50));
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const sizes: number[] = [];
    const take = (batch: readonly IncomingMessage[]): Promise<void> => {
      sizes.push(batch.length);
      asked.resolve();
      return gate.promise;
    };
    const first = await startReading(sourceOf(endpoint, name, { held: { messages: 10 } }), take);
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
    const second = await startReading(sourceOf(endpoint, name, { held: { messages: 10 } }));
    await until('the rest', () => second.messages.length >= 50 - first.messages.length);
    await second.stop();
    expect(new Set([...idsOf(first.messages), ...idsOf(second.messages)])).toEqual(range(0, 50));
  });

  it('says which subscription does not exist', async () => {
    const { endpoint } = await make();
    await expect(startReading(sourceOf(endpoint, 'nowhere'))).rejects.toThrow(
      /^subscription nowhere: .*NOT_FOUND/,
    );
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
    const { messages } = await startReading(sourceOf(away.endpoint, 'reader'));
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
    await expect(startReading(sourceOf(away.endpoint, 'reader', { timeout: '300ms' }))).rejects.toThrow(
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
