import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { decodeBody } from '../../src/sources/take.ts';
import { parseOptions } from '../../src/sources/kafka/config.ts';
import { toIncoming } from '../../src/sources/kafka/message.ts';
import { KafkaSource } from '../../src/sources/kafka/source.ts';
import { makeSink, put } from '../sinks/kafka-support.ts';
import { makeContext, signal } from '../sinks/support.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { until, within } from '../support/until.ts';
import { idsOf, range, startReading, type Take } from './reading.ts';

describeOnKafka('kafka source', {}, ({ addresses, brokers, oracle }) => {
  const make = async (partitions = 3): Promise<string> => {
    const topic = `events-${randomUUID()}`;
    await oracle.create(topic, partitions);
    return topic;
  };
  const read = (topic: string, take?: Take, options: object = {}) => {
    const parsed = parseOptions({
      brokers: addresses,
      tls: { enabled: false },
      topic,
      group: `group-${topic}`,
      session: '3s',
      timeout: '3s',
      ...options,
    });
    const checkpoints = { load: () => Promise.resolve(null), save: () => Promise.resolve() };
    return startReading(new KafkaSource(parsed, { ...makeContext(), checkpoints }), take);
  };
  /** What our own sink writes. */
  const write = async (topic: string, from: number, to: number): Promise<void> => {
    const sink = makeSink(addresses, { topic });
    const long = Buffer.from(`{"long":"${'x'.repeat(2000)}"}`);
    await put(
      sink,
      Array.from({ length: to - from }, (_, i) => contractEvent(from + i, i % 2 === 0 ? {} : { body: long })),
    );
    await sink.close(signal);
  };

  it('reads what our own sink writes: bytes, encoding, headers, each user in order', async () => {
    const topic = await make();
    await write(topic, 0, 40);
    const { messages } = await read(topic);
    await until('40 messages', () => messages.length === 40);
    expect(new Set(idsOf(messages))).toEqual(range(0, 40));
    for (const { body, encoding, properties, receivedAt } of messages) {
      const n = Number(properties['idempotency-key']?.slice('msg_'.length));
      expect(encoding).toBe(n % 2 === 0 ? null : 'gzip');
      const decoded = await decodeBody(body, encoding, 10_000);
      if (n % 2 === 0) expect(decoded).toEqual({ ok: true, body: contractEvent(n).body });
      else expect(decoded).toMatchObject({ ok: true });
      expect(properties['user-id']).toBe(`user-${n % 7}`);
      expect(receivedAt).toBeGreaterThan(0);
    }
    for (let user = 0; user < 7; user += 1) {
      const ids = idsOf(messages.filter(({ properties }) => properties['user-id'] === `user-${user}`));
      expect(ids).toEqual(ids.toSorted((a, b) => Number(a.slice(4)) - Number(b.slice(4))));
    }
  });

  it('takes what others write, also a record without key, value and headers', async () => {
    const topic = await make(1);
    await oracle.write(topic, null, Buffer.from('{"a":1}'), { content_encoding: 'GZIP', 'event-type': 'a' });
    await oracle.write(topic, Buffer.from('key'), null);
    const { messages } = await read(topic);
    await until('2 messages', () => messages.length === 2);
    expect(messages).toMatchObject([
      { body: Buffer.from('{"a":1}'), encoding: 'gzip', properties: { 'event-type': 'a' } },
      { body: Buffer.alloc(0), encoding: null, properties: {} },
    ]);
  });

  it('commits only what was taken, and does not get it again', async () => {
    const topic = await make();
    await write(topic, 0, 20);
    const first = await read(topic);
    await until('20 messages', () => first.messages.length === 20);
    await first.stop();
    const committed = await oracle.committed(`group-${topic}`, topic);
    expect([...committed.values()].reduce((sum, offset) => sum + offset, 0)).toBe(20);
    await write(topic, 20, 35);
    const second = await read(topic);
    await until('15 messages', () => second.messages.length >= 15);
    await second.stop();
    expect(new Set(idsOf(second.messages))).toEqual(range(20, 35));
  });

  it('ends when a batch is not taken, commits nothing of it, and gets it again', async () => {
    const topic = await make();
    await write(topic, 0, 30);
    const first = await read(topic, () => Promise.reject(new Error('journal is full')));
    expect(await within('the end', first.ended)).toMatchObject({ message: 'journal is full' });
    await first.stop();
    expect((await oracle.committed(`group-${topic}`, topic)).size).toBe(0);
    const second = await read(topic);
    await until('every message', () => new Set(idsOf(second.messages)).size === 30);
  });

  it('shares the partitions with another consumer of the group, and takes over those of one that leaves', async () => {
    const topic = await make(4);
    const first = await read(topic);
    await write(topic, 0, 40);
    await until('40 messages', () => first.messages.length === 40);
    const second = await read(topic);
    const all = (): Set<string> => new Set([...idsOf(first.messages), ...idsOf(second.messages)]);
    let n = 40;
    await until('both to read', async () => {
      await write(topic, n, n + 20);
      n += 20;
      return second.messages.length > 0;
    });
    await until('every message', () => all().size === n);
    await first.stop();
    await write(topic, n, n + 40);
    n += 40;
    await until('the rest', () => all().size === n);
    expect(all()).toEqual(range(0, n));
  });

  it('says which topic does not exist', async () => {
    await expect(read('nowhere')).rejects.toThrow(/^topic nowhere: it does not exist/);
  });

  // A broker takes seconds to come back.
  it('is told to begin anew when the broker has gone, and continues behind what was taken', async () => {
    const topic = await make(1);
    await write(topic, 0, 10);
    const first = await read(topic);
    await until('10 messages', () => first.messages.length === 10);
    await brokers[0]?.kill();
    expect(await within('the end', first.ended)).toBeInstanceOf(Error);
    await first.stop();
    await brokers[0]?.start();
    await write(topic, 10, 20);
    const second = await read(topic);
    await until(
      '10 messages',
      () => new Set([...idsOf(first.messages), ...idsOf(second.messages)]).size === 20,
    );
    onTestFinished(second.stop);
  });
});

const header = (name: string, value: string): [Buffer, Buffer] => [Buffer.from(name), Buffer.from(value)];

describe('a record', () => {
  const NOW = 1_795_230_902_123;

  test('has its headers as text, the last of a name wins', () => {
    const record = {
      value: Buffer.from('{}'),
      timestamp: BigInt(NOW - 1),
      headerEntries: [header('a', 'b'), header('a', 'c'), header('content-encoding', 'GZip')],
    };
    expect(toIncoming(record, NOW)).toEqual({
      body: Buffer.from('{}'),
      encoding: 'gzip',
      properties: { a: 'c', 'content-encoding': 'GZip' },
      receivedAt: NOW - 1,
    });
  });

  test.each([-1n, 0n, BigInt(NOW) + 1n, 2n ** 62n])(
    'is as old as its arrival when it says %s',
    (timestamp) => {
      const record = { value: Buffer.from('{}'), timestamp, headerEntries: [] };
      expect(toIncoming(record, NOW).receivedAt).toBe(NOW);
    },
  );
});

describe('kafka source options', () => {
  it('has defaults', () => {
    expect(parseOptions({ brokers: 'kafka:9093', topic: 'events' })).toEqual({
      connection: { brokers: ['kafka:9093'], tls: {}, sasl: null, eventHubs: false },
      topic: 'events',
      group: 'millrace',
      start: 'earliest',
      fetchBytes: 8 * 2 ** 20,
      session: 30_000,
      timeout: 15_000,
    });
  });

  it.each([
    [{ brokers: 'kafka:9093' }, 'topic'],
    [{ brokers: 'kafka:9093', topic: 'a b' }, 'topic'],
    [{ topic: 'events' }, 'brokers'],
    [{ brokers: 'kafka:9093', topic: 'events', group: '' }, 'group'],
    [{ brokers: 'kafka:9093', topic: 'events', start: 'now' }, 'start'],
  ])('%j names %s', (options, key) => {
    expect(() => parseOptions(options)).toThrow(key);
  });
});
