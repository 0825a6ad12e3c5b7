import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { parseOptions } from '../../src/sinks/kafka/config.ts';
import { KafkaSink } from '../../src/sinks/kafka/sink.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import type { KafkaCluster } from '../support/kafka/cluster.ts';
import type { KafkaRecord } from '../support/kafka/oracle.ts';
import { seededRandom } from '../support/random.ts';
import { startDelivering } from './delivering.ts';
import { makeContext, signal } from './support.ts';

/**
 * A sink for a cluster without TLS, not opened. A try has a part of its time, and what a busy broker answers later than that is sent again,
 * which may arrive twice.
 */
export function makeSink(brokers: readonly string[], options: object = {}): KafkaSink {
  const parsed = parseOptions({ brokers, tls: { enabled: false }, timeout: '6s', ...options });
  return new KafkaSink(parsed, makeContext());
}

/** The event's bytes as a consumer reads them. */
export function bodyOf({ value, headers }: KafkaRecord): Buffer {
  const bytes = value ?? Buffer.alloc(0);
  return headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
}

export function idsOf(records: readonly KafkaRecord[]): string[] {
  return records.map(({ headers }) => headers['idempotency-key'] ?? '');
}

/** Sends events at once, and insists on their being delivered. */
export async function put(sink: KafkaSink, events: readonly JournalEvent[]): Promise<void> {
  const results = await sink.send(
    events.map((event) => ({ event, destination: null })),
    signal,
  );
  for (const result of results) expect(result).toEqual({ status: 'delivered' });
}

/**
 * Puts bursts of events while faults come, one after another; in the end each has arrived, those of a user in order.
 * @param faults each gets a function that puts one more burst, and one that waits for a condition
 */
export async function surviveFaults(
  { sink, topic, oracle, users, burst, seed }: Surviving,
  faults: readonly ((during: During) => Promise<unknown>)[],
): Promise<void> {
  const random = seededRandom(seed);
  const { journal, delivered, settled, dispatcher } = await startDelivering({ topics: sink });
  const sent: string[] = [];
  const more = (): void => {
    for (let n = 0; n < burst; n += 1) {
      const event = contractEvent(sent.length, { user: `user-${Math.floor(random() * users)}` });
      journal.put(event);
      sent.push(event.id);
    }
  };
  const isOver = (count: number): boolean => dispatcher.status().every((each) => each.delivered >= count);
  const noticed = (): Promise<unknown> =>
    settled('the trouble is noticed', () => dispatcher.status().some(({ lastError }) => lastError !== null));
  const earlier = (): Promise<unknown> =>
    settled('the burst before to be delivered', () => isOver(sent.length - burst));
  for (const fault of faults) {
    more();
    await fault({ more, noticed, earlier, random });
    await delivered('topics', sent.length);
  }
  const records = await oracle.read(topic);
  expect(new Set(idsOf(records))).toEqual(new Set(sent));
  console.info(`${sent.length} events, ${records.length - sent.length} repeated`);
  for (let user = 0; user < users; user += 1) {
    const ids = idsOf(records.filter(({ key }) => key?.toString() === `user-${user}`));
    const first = [...new Set(ids)].map((id) => Number(id.slice('msg_'.length)));
    expect(first).toEqual(first.toSorted((a, b) => a - b));
  }
}

interface Surviving extends Pick<KafkaCluster, 'oracle'> {
  readonly sink: KafkaSink;
  readonly topic: string;
  readonly users: number;
  /** Events that are put before each fault. */
  readonly burst: number;
  readonly seed: number;
}

interface During {
  readonly more: () => void;
  readonly noticed: () => Promise<unknown>;
  readonly earlier: () => Promise<unknown>;
  readonly random: () => number;
}
