import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { parseOptions } from '../../src/sources/kafka/config.ts';

import { KafkaSource, toIncoming } from '../../src/sources/kafka/source.ts';
import { makeSink, put } from '../sinks/kafka-support.ts';
import { makeContext, signal } from '../sinks/support.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { until, within } from '../support/until.ts';
import { events, sourceContract } from './contract.ts';
import { idsOf, range, startReading, type Take } from './reading.ts';

describeOnKafka('kafka source', {}, ({ addresses, brokers, oracle }) => {
  const make = async (partitions = 3): Promise<string> => {
    const topic = `events-${randomUUID()}`;
    await oracle.create(topic, partitions);
    return topic;
  };
  const sourceOf = (topic: string): KafkaSource => {
    const written = { brokers: addresses, tls: { enabled: false }, topic, group: `group-${topic}` };
    const checkpoints = { load: () => Promise.resolve(null), save: () => Promise.resolve() };
    const parsed = parseOptions({ ...written, session: '3s', timeout: '3s' });
    return new KafkaSource(parsed, { ...makeContext(), checkpoints });
  };
  const read = (topic: string, take?: Take) => startReading(sourceOf(topic), take);
  /** By our own sink. */
  const write = async (topic: string, batch: readonly JournalEvent[]): Promise<void> => {
    const sink = makeSink(addresses, { topic });
    await put(sink, batch);
    await sink.close(signal);
  };

  sourceContract(async () => {
    const topic = await make();
    return { source: () => sourceOf(topic), publish: (batch) => write(topic, batch) };
  });

  it('takes what others write, also a record without key, value and headers', async () => {
    const topic = await make(1);
    await oracle.write(topic, null, Buffer.from('{"a":1}'), {
      content_encoding: 'GZIP',
      'event-type': 'a',
    });
    await oracle.write(topic, Buffer.from('key'), null);
    const { messages } = await read(topic);
    await until('2 messages', () => messages.length === 2);
    expect(messages).toMatchObject([
      { body: Buffer.from('{"a":1}'), encoding: 'gzip', properties: { 'event-type': 'a' } },
      { body: Buffer.alloc(0), encoding: null, properties: {} },
    ]);
  });

  it('commits what was taken, and nothing else', async () => {
    const topic = await make();
    await write(topic, events(0, 20));
    const refusing = await read(topic, () => Promise.reject(new Error('journal is full')));
    await within('the end', refusing.ended);
    await refusing.stop();
    expect((await oracle.committed(`group-${topic}`, topic)).size).toBe(0);
    const { messages, stop } = await read(topic);
    await until('20 messages', () => messages.length === 20);
    await stop();
    const committed = await oracle.committed(`group-${topic}`, topic);
    expect([...committed.values()].reduce((sum, offset) => sum + offset, 0)).toBe(20);
  });

  it('shares the partitions with another consumer of the group, and takes over those of one that leaves', async () => {
    const topic = await make(4);
    const first = await read(topic);
    await write(topic, events(0, 40));
    await until('40 messages', () => first.messages.length === 40);
    const second = await read(topic);
    const all = (): Set<string> => new Set([...idsOf(first.messages), ...idsOf(second.messages)]);
    let n = 40;
    await until('both to read', async () => {
      await write(topic, events(n, n + 20));
      n += 20;
      return second.messages.length > 0;
    });
    await until('every message', () => all().size === n);
    await first.stop();
    await write(topic, events(n, n + 40));
    n += 40;
    await until('the rest', () => all().size === n);
    expect(all()).toEqual(range(0, n));
  });

  it('says which topic does not exist', async () => {
    await expect(read('nowhere')).rejects.toThrow(/^topic nowhere: it does not exist/);
  });

  // A broker takes seconds to come back.
  it('ends when the broker is gone, and continues behind what was accepted', async () => {
    const topic = await make(1);
    await write(topic, events(0, 10));
    const first = await read(topic);
    await until('10 messages', () => first.messages.length === 10);
    await brokers[0]?.kill();
    expect(await within('the end', first.ended)).toBeInstanceOf(Error);
    await first.stop();
    await brokers[0]?.start();
    // One that has just started may answer too late: what is sent again may arrive twice.
    await until('the broker to take more', () =>
      write(topic, events(10, 20)).then(
        () => true,
        () => false,
      ),
    );
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
