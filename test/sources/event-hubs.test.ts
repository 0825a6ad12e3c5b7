import { EventHubProducerClient } from '@azure/event-hubs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CheckpointStore, Source } from '../../src/core/source.ts';
import { createSource, parseOptions } from '../../src/sources/event-hubs/source.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import { until, within } from '../support/until.ts';
import { makeContext, signal } from '../sinks/support.ts';
import { publish } from './event-hubs-support.ts';
import { events, sourceContract } from './contract.ts';
import { idsOf, range, startReading, type Reading } from './reading.ts';

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

function sourceOf(peer: AmqpPeer, checkpoints: CheckpointStore, options: object = {}): Source {
  const { connectionString } = peer;
  const parsed = parseOptions({ connectionString, hub: 'events', timeout: '1s', ...options });
  return createSource(parsed, { ...makeContext(), name: 'pipeline', checkpoints });
}

const read = (...asked: Parameters<typeof sourceOf>): Promise<Reading> => startReading(sourceOf(...asked));

describe('event-hubs source', () => {
  sourceContract(async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    return { source: () => sourceOf(peer, checkpoints), publish: (batch) => publish(peer, batch) };
  });

  it('notes its place in each partition, by source, hub and consumer group', async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    await publish(peer, events(0, 20));
    const { messages, stop } = await read(peer, checkpoints);
    await until('20 messages', () => messages.length === 20);
    await stop();
    expect([...checkpoints.saved.keys()].toSorted()).toEqual(
      [0, 1, 2].map((id) => `pipeline/127.0.0.1:${peer.port}/events/$Default/${id}`),
    );
    const stored = new Map(peer.messages('events').map((each) => [each.properties['idempotency-key'], each]));
    for (const { properties, receivedAt } of messages)
      expect(receivedAt).toBe(stored.get(properties['idempotency-key'])?.enqueuedAt);
  });

  it('loses nothing when the broker goes away and comes back', async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    await publish(peer, events(0, 10));
    const first = await read(peer, checkpoints);
    await until('10 messages', () => first.messages.length === 10);
    await peer.stop();
    expect(await first.ended).toMatchObject({
      message: expect.stringMatching(/^event hub events: /) as string,
    });
    await expect(read(peer, checkpoints)).rejects.toThrow(/ECONNREFUSED/);
    await peer.restart();
    await publish(peer, events(10, 20));
    const second = await read(peer, checkpoints);
    await until('10 more', () => second.messages.length >= 10);
    expect(new Set(idsOf(second.messages))).toEqual(range(10, 20));
  });

  it('does not wait for the close of a connection that answers no more', async () => {
    const peer = await openPeer();
    await publish(peer, events(0, 10));
    const source = sourceOf(peer, new Checkpoints());
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
    await publish(peer, events(0, 10));
    const { messages } = await read(peer, new Checkpoints(), { timeout: '15s' });
    await until('10 messages', () => messages.length === 10);
    peer.cut();
    await publish(peer, events(10, 20));
    await until('20 messages', () => messages.length >= 20);
    expect(new Set(idsOf(messages))).toEqual(range(0, 20));
  });

  it('with start: latest begins with what comes next, and misses nothing of it while it is away', async () => {
    const peer = await openPeer();
    const checkpoints = new Checkpoints();
    await publish(peer, events(0, 10));
    const first = await read(peer, checkpoints, { start: 'latest' });
    await until('three positions', () => checkpoints.saved.size === 3);
    await first.stop();
    await publish(peer, events(10, 20));
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
  });
});
