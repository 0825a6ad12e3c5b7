import { expect, test } from 'vitest';
import { Cluster, type FetchedRecord } from '../../src/journal/kafka/cluster.ts';
import { recordOf } from '../../src/journal/kafka/record.ts';
import { PartitionWindow } from '../../src/journal/kafka/window.ts';
import { asRead } from './as-read.ts';

const [RECORDS, PAGE] = [20_000, 500];
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };

function recordAt(offset: number): FetchedRecord {
  const event = {
    id: `msg_${offset}`,
    type: 'made.up',
    team: null,
    user: 'u',
    clientUser: null,
    source: 'webhooks',
    receivedAt: 1_790_000_000_000,
    headers: {},
    body: Buffer.from('{}'),
  };
  return { ...asRead(recordOf(event, null, {})), offset, time: event.receivedAt };
}

test('a window whose reading is ended again and again is read in the end, and no record of it often', async () => {
  let fetched = 0;
  let stop = new AbortController();
  const cluster = Object.assign(Object.create(Cluster.prototype) as Cluster, {
    topic: async (name: string) => ({ id: name, leaders: name === 'events' ? [1] : [] }),
    offsets: async (_: string, [partition = 0]: readonly number[], time: unknown) =>
      new Map([[partition, time === 'latest' ? RECORDS : 0]]),
    fetch: async (_: number, __: object, from: ReadonlyMap<number, number>) => {
      const [[partition, at] = [0, 0]] = from;
      const next = Math.min(RECORDS, at + PAGE);
      const records = Array.from({ length: next - at }, (_each, n) => recordAt(at + n));
      fetched += records.length;
      if (fetched % 7000 < PAGE) stop.abort();
      return [{ partition, error: 'NONE', records, next }];
    },
  });
  const options = { topic: 'events', windowTopic: 'window', dedupWindow: 1e9, log };
  const window = new PartitionWindow(0, options);
  let ended = 0;
  const isRead = (): Promise<boolean> =>
    window.cover(cluster, RECORDS, stop.signal).then(
      () => true,
      () => false,
    );
  while (!(await isRead())) {
    ended += 1;
    stop = new AbortController();
  }
  expect(ended).toBeGreaterThan(1);
  // Of a stretch of 4096 that was not read to its end, all again.
  expect(fetched).toBeLessThan(RECORDS + (ended + 1) * 4096 + PAGE);
  for (const offset of [0, 4095, 4096, 12_345, RECORDS - 1]) {
    const record = recordAt(offset);
    const again = window.judge({ ...record, offset: RECORDS });
    expect(again.verdict).toBe('duplicate');
  }
});
