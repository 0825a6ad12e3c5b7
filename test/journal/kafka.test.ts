import { expect, test } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import type { Cluster, Fetched, FetchedRecord, Span } from '../../src/journal/kafka/cluster.ts';
import { FetchedEvents } from '../../src/journal/kafka/fetched-events.ts';
import { Lease } from '../../src/journal/kafka/lease.ts';
import { PartitionFetcher } from '../../src/journal/kafka/partition-fetcher.ts';
import { recordOf } from '../../src/journal/kafka/record.ts';
import { SetAsideEvents } from '../../src/journal/kafka/set-aside-events.ts';
import { TopicAccount } from '../../src/journal/kafka/topic-account.ts';
import type { Topics } from '../../src/journal/kafka/topics.ts';
import { Bell } from '../../src/lib/bell.ts';
import type { Message } from '../../src/vendors/kafka/message.ts';
import { makeEvent } from '../support/events.ts';

const HOUR = 3_600_000;
const silent = { info: () => {}, warn: () => {}, error: () => {} };

/** A topic of one partition in memory. */
class MemoryTopic {
  readonly records: FetchedRecord[] = [];
  readonly topic = 'made-up';

  append(_to: unknown, { key, value, headers }: Message): Promise<void> {
    const named = headers.map(([name, text]) => [name, Buffer.from(text)] as const);
    this.records.push({ offset: this.records.length, key, value, headers: named, time: 0 });
    return Promise.resolve();
  }
}

/** The requests for reading, by topics in memory. */
function clusterOf(topics: ReadonlyMap<string, MemoryTopic>, changes: object = {}): Cluster {
  const recordsOf = (name: string): readonly FetchedRecord[] => topics.get(name)?.records ?? [];
  const span = (name: string): Span => ({ partition: 0, from: 0, to: recordsOf(name).length });
  const requests = {
    topic: () => Promise.resolve({ id: 'made-up', leaders: [7] }),
    group: () => ({ checkpoints: () => Promise.resolve(new Map()) }),
    offsets: (name: string, _: unknown, time: unknown) =>
      Promise.resolve(new Map([[0, time === 'latest' ? span(name).to : 0]])),
    spans: (name: string) => Promise.resolve([span(name)]),
    first: (name: string, { from }: Span) => Promise.resolve(recordsOf(name)[from] ?? null),
    pages: async function* (name: string, { from, to }: Span) {
      yield { records: await Promise.resolve(recordsOf(name).slice(from, to)), from, next: to };
    },
  };
  return { ...requests, ...changes } as unknown as Cluster;
}

const WINDOW = { topic: 'events', windowTopic: 'window', dedupWindow: HOUR, log: silent };

test('retried dead letters are counted without those of erased users, which are removed as well', async () => {
  const [quarantine, deadLetters] = [new MemoryTopic(), Object.assign(new MemoryTopic(), { topic: 'dead' })];
  const cluster = clusterOf(new Map([['dead', deadLetters]]));
  class Retrying extends SetAsideEvents {
    readonly sent: string[] = [];

    protected override sendAgain({ id, user }: Event): Promise<boolean> {
      if (user !== 'erased') this.sent.push(id);
      return Promise.resolve(user !== 'erased');
    }

    add(event: Event): Promise<void> {
      const about = { sink: 'hubs', destination: null, code: 'c', reason: 'r', attempts: 1, diedAt: 1 };
      return this.addDeadLetter({ ...about, event: { ...event, seq: 1, handling: {} } });
    }
  }
  const journal = new Retrying({ quarantine, deadLetters, cluster } as unknown as Topics);
  for (const [id, user] of [
    ['one', 'kept'],
    ['two', 'erased'],
    ['three', 'kept'],
  ] as const)
    await journal.add(makeEvent({ id, user }));
  expect(await journal.retryDeadLetters({})).toBe(2);
  expect(journal.sent).toEqual(['one', 'three']);
  expect(await journal.listDeadLetters({})).toEqual([]);
});

test('a partition that cannot be read is logged with its number and the error of the broker', async () => {
  const said: object[] = [];
  const lease = new Lease({ id: 'm', generation: 1 }, [0], {
    asked: 0,
    session: 1e6,
    now: () => 0,
  });
  const answers: readonly Fetched[] = [{ partition: 0, error: 'KAFKA_STORAGE_ERROR', records: [], next: 0 }];
  const cluster = clusterOf(new Map(), { fetch: () => Promise.resolve(answers) });
  const log = {
    ...silent,
    warn: (fields: object) => {
      said.push(fields);
      lease.end();
    },
  };
  const fetcher = new PartitionFetcher(
    lease,
    cluster,
    {
      ...WINDOW,
      log,
      name: 'hubs',
      group: 'made-up.hubs',
      deadLetterTopic: 'dead',
      maxWaiting: 1e6,
      flushSink: () => {},
    },
    { windows: new Map(), events: new FetchedEvents(), room: new Bell(), wake: () => {} },
  );
  await fetcher.run();
  expect(said).toEqual([{ group: 'made-up.hubs', leader: 7, partition: 0, error: 'KAFKA_STORAGE_ERROR' }]);
});

test('the account of a topic counts by hour what its heads have shown by then', async () => {
  const events = new MemoryTopic();
  for (const [id, hour] of [
    ['a', 5],
    ['b', 3],
    ['c', 5],
    ['c', 5],
    ['late', 9],
  ] as const) {
    const event = makeEvent({ id, receivedAt: hour * HOUR + 7, body: Buffer.from(id) });
    await events.append(null, recordOf(event, null, { handling: { only: [] } }));
  }
  const cluster = clusterOf(new Map([['events', events]]));
  const topic = new TopicAccount({ ...WINDOW, group: 'made-up', isErased: () => false }, cluster);
  const account = await topic.account(0, 8 * HOUR, []);
  expect(account).toMatchObject({ lastSeq: 5, counts: [], dropped: null });
  expect((await topic.heads(0)).map(({ id }) => id)).toEqual(['a', 'b', 'c', 'late']);
  expect(account.counts).toEqual([
    { hour: 3 * HOUR, kind: 'accepted', n: 1 },
    { hour: 5 * HOUR, kind: 'accepted', n: 2 },
    { hour: 5 * HOUR, kind: 'duplicates', n: 1 },
  ]);
});
