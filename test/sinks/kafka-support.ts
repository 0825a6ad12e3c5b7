import { gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { parseOptions } from '../../src/sinks/kafka/config.ts';
import { KafkaSink } from '../../src/sinks/kafka/sink.ts';
import type { KafkaRecord } from '../support/kafka/oracle.ts';
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
