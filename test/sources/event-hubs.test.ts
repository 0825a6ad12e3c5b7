import { EventHubProducerClient } from '@azure/event-hubs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CheckpointStore } from '../../src/core/source.ts';
import { createSource, parseOptions } from '../../src/sources/event-hubs/source.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import { until, within } from '../support/until.ts';
import { makeContext, signal } from '../sinks/support.ts';
import { publish } from './event-hubs-support.ts';
import { idsOf, range, startReading, type Reading, type Take } from './reading.ts';

class Checkpoints implements CheckpointStore {
  readonly saved = new Map<string, string>();

  load(key: string): Promise<string | null> {
    return Promise.resolve(this.saved.get(key) ?? null);
  }

  save(key: string, value: string): Promise<void> {
    this.saved.set(key, value);
    return Promise.resolve();
  }
}

async function openPeer(): Promise<AmqpPeer> {
  const peer = await startAmqpPeer({ hubs: ['events'], partitions: 3 });
  onTestFinished(() => peer.stop());
  return peer;
}

async function read(
  peer: AmqpPeer,
  checkpoints: CheckpointStore,
  options: object = {},
  take?: Take,
): Promise<Reading> {
  const { connectionString } = peer;
  const parsed = parseOptions({ connectionString, hub: 'events', timeout: '1s', ...options });
  const source = createSource(parsed, { ...makeContext(), name: 'pipeline', checkpoints });
  return startReading(source, take);
}

describe('event-hubs source', () => {
  it('hands over bytes, encoding and properties as they lie in the hub, each partition in order', async () => {
    const peer = await openPeer();
    await publish(peer, 0, 40);
    const { messages, stop } = await read(peer, new Checkpoints());
    await until('40 messages', () => messages.length === 40);
    await stop();
    const stored = new Map(peer.messages('events').map((each) => [each.properties['idempotency-key'], each]));
    for (const message of messages) {
      const original = stored.get(message.properties['idempotency-key']);
      expect(message.body).toEqual(original?.body);
      expect(message.properties).toEqual(original?.properties);
      expect(message.encoding).toBe(original?.properties['content-encoding'] ?? null);
      expect(message.receivedAt).toBe(original?.enqueuedAt);
    }
    for (const user of new Set(messages.map(({ properties }) => properties['user-id']))) {
      const ids = idsOf(messages.filter(({ properties }) => properties['user-id'] === user));
      expect(ids).toEqual(ids.toSorted((a, b) => Number(a.slice(4)) - Number(b.slice(4))));
    }
  });

  it('continues behind its checkpoints in its next life', async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    await publish(peer, 0, 20);
    const first = await read(peer, checkpoints);
    await until('20 messages', () => first.messages.length === 20);
    await first.stop();
    await publish(peer, 20, 35);
    const second = await read(peer, checkpoints);
    await until('15 messages', () => second.messages.length === 15);
    await second.stop();
    expect(new Set(idsOf(second.messages))).toEqual(range(20, 35));
    expect([...checkpoints.saved.keys()].toSorted()).toEqual(
      [0, 1, 2].map((id) => `pipeline/127.0.0.1:${peer.port}/events/$Default/${id}`),
    );
  });

  it('ends when a batch is not taken, keeps no checkpoint for it, and reads it again', async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    await publish(peer, 0, 30);
    let refused: readonly string[] = [];
    const first = await read(peer, checkpoints, {}, (batch) => {
      if (refused.length > 0 || !idsOf(batch).includes('msg_5')) return Promise.resolve();
      refused = idsOf(batch);
      return Promise.reject(new Error('journal is full'));
    });
    expect(await first.ended).toMatchObject({ message: 'journal is full' });
    const second = await read(peer, checkpoints);
    const all = (): Set<string> => new Set([...idsOf(first.messages), ...idsOf(second.messages)]);
    await until('every message', () => all().size === 30);
    expect(idsOf(second.messages)).toEqual(expect.arrayContaining([...refused]));
    expect(all()).toEqual(range(0, 30));
  });

  it('loses nothing when the broker goes away and comes back', async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    await publish(peer, 0, 10);
    const first = await read(peer, checkpoints);
    await until('10 messages', () => first.messages.length === 10);
    await peer.stop();
    expect(await first.ended).toMatchObject({
      message: expect.stringMatching(/^event hub events: /) as string,
    });
    await expect(read(peer, checkpoints)).rejects.toThrow(/ECONNREFUSED/);
    await peer.restart();
    await publish(peer, 10, 20);
    const second = await read(peer, checkpoints);
    await until('10 more', () => second.messages.length >= 10);
    expect(new Set(idsOf(second.messages))).toEqual(range(10, 20));
  });

  it('does not wait for the close of a connection that answers no more', async () => {
    const peer = await openPeer();
    await publish(peer, 0, 10);
    const { connectionString } = peer;
    const parsed = parseOptions({ connectionString, hub: 'events', timeout: '1s' });
    const context = { ...makeContext(), name: 'pipeline', checkpoints: new Checkpoints() };
    const source = createSource(parsed, context);
    await source.open(signal);
    const take = (): Promise<void> => {
      peer.freeze();
      return Promise.reject(new Error('journal is full'));
    };
    await expect(source.run(take, signal)).rejects.toThrow('journal is full');
    // Far less than the minute that the SDK waits for each answer.
    await within('the next connection', source.open(signal), 30_000);
    await source.close(AbortSignal.abort());
  });

  it('reads on when only the connection was cut', async () => {
    const peer = await openPeer();
    await publish(peer, 0, 10);
    const { messages } = await read(peer, new Checkpoints(), { timeout: '15s' });
    await until('10 messages', () => messages.length === 10);
    peer.cut();
    await publish(peer, 10, 20);
    await until('20 messages', () => messages.length >= 20);
    expect(new Set(idsOf(messages))).toEqual(range(0, 20));
  });

  it('with start: latest begins with what comes next, and misses nothing of it while it is away', async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    await publish(peer, 0, 10);
    const first = await read(peer, checkpoints, { start: 'latest' });
    await until('three positions', () => checkpoints.saved.size === 3);
    await first.stop();
    await publish(peer, 10, 20);
    const second = await read(peer, checkpoints, { start: 'latest' });
    await until('10 messages', () => second.messages.length === 10);
    expect(first.messages).toEqual([]);
    expect(new Set(idsOf(second.messages))).toEqual(range(10, 20));
  });

  it('takes metadata with underscores, other encodings and other bodies as they are', async () => {
    const peer = await openPeer();
    const client = new EventHubProducerClient(peer.connectionString, 'events');
    const properties = { event_type: 'a.b', content_encoding: 'BR', count: 3 };
    await client.sendBatch([{ body: Buffer.from([1, 2, 3]), properties }]);
    await client.close();
    const { messages } = await read(peer, new Checkpoints());
    await until('a message', () => messages.length === 1);
    expect(messages[0]).toMatchObject({
      body: Buffer.from([1, 2, 3]),
      encoding: 'br',
      properties: { event_type: 'a.b', content_encoding: 'BR', count: '3' },
    });
  });

  it('says what is wrong with a hub it cannot read', async () => {
    const peer = await openPeer();
    await expect(read(peer, new Checkpoints(), { hub: 'gone' })).rejects.toThrow(
      /event hub gone: it does not exist/,
    );
    expect(() => parseOptions({ connectionString: peer.connectionString })).toThrow(/^hub: must name/);
    expect(() => parseOptions({ connectionString: peer.connectionString, hub: 'a', start: 'now' })).toThrow(
      /^start: /,
    );
  });
});
