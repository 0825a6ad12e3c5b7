import { expect, test } from 'vitest';
import type { ErasureRun, LeftItem } from '../../src/core/erasure.ts';
import { Cluster } from '../../src/journal/kafka/cluster.ts';
import { eraseFromTopics, keptUntilBy } from '../../src/journal/kafka/erasure.ts';
import { recordOf } from '../../src/journal/kafka/record.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { asRead } from './as-read.ts';

const NOW = Date.UTC(2026, 10, 22);
const DAY = String(86_400_000);

test.each([
  // What is appended a day after it can lie in the same segment, which is kept for two days after that.
  [
    { 'retention.ms': String(2 * 86_400_000), 'segment.ms': DAY },
    'until 2026-11-25T00:06:00.000Z at the latest',
  ],
  [
    { 'retention.ms': DAY, 'segment.ms': DAY, 'file.delete.delay.ms': '0' },
    'until 2026-11-24T00:05:00.000Z at the latest',
  ],
  [{}, 'until 2026-12-06T00:06:00.000Z at the latest'],
  [{ 'retention.ms': '-1' }, 'for ever (retention.ms is -1)'],
  [{ 'retention.ms': '9223372036854775807' }, 'for more than a hundred years'],
  [{ 'cleanup.policy': 'compact' }, 'until they compact it (max.compaction.lag.ms sets no end)'],
  [
    { 'cleanup.policy': 'compact', 'max.compaction.lag.ms': DAY, 'segment.ms': DAY },
    'until 2026-11-24T00:00:00.000Z',
  ],
])('of %j the receipt says: %s', (settings, text) => {
  expect(keptUntilBy(new Map(Object.entries(settings)), NOW)).toBe(text);
});

test('the receipt names the topic that keeps events of the user, and until when', async () => {
  const records = ['gone', 'stays', 'gone'].map((user, offset) => {
    const event = contractEvent(offset, { user });
    return { ...asRead(recordOf(event, null, {})), offset, time: event.receivedAt };
  });
  const cluster = Object.assign(Object.create(Cluster.prototype) as Cluster, {
    topic: async (id: string) => ({ id, leaders: [1] }),
    offsets: async (_: string, __: unknown, time: unknown) =>
      new Map([[0, time === 'latest' ? records.length : 0]]),
    fetch: async () => [{ partition: 0, error: 'NONE', records, next: records.length }],
    settings: async () => new Map([['retention.ms', DAY]]),
  });
  const left: LeftItem[] = [];
  const run = {
    subjects: [{ request: 'req_1', by: 'user', id: 'gone', team: null }],
    signal: new AbortController().signal,
    leave: (item: LeftItem) => left.push(item),
    onStep: () => undefined,
  } as unknown as ErasureRun;
  await eraseFromTopics(cluster, 'events', [], run);
  expect(left).toEqual([
    {
      store: 'journal',
      item: expect.stringMatching(
        /^topic events: the brokers keep what it had until .*Z at the latest$/,
      ) as string,
      requests: [],
      reason: '2 of its records are of the user; brokers delete whole segments, by their age',
    },
  ]);
});
