import { gunzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { parseOptions } from '../../src/sinks/pubsub/config.ts';
import { PubSubSink } from '../../src/sinks/pubsub/sink.ts';
import { PROJECT, startPubSubPeer, type PubSubPeer } from '../support/pubsub-peer/peer.ts';
import type { Arrived } from '../../src/sinks/contract-checks.ts';
import { makeContext, signal, type TestContext } from './support.ts';

export interface Subject {
  readonly peer: PubSubPeer;
  readonly sink: PubSubSink;
  readonly context: TestContext;
}

/** A sink for an endpoint, not opened. */
export function makeSink(
  endpoint: string,
  options: object = {},
): { readonly sink: PubSubSink; readonly context: TestContext } {
  const parsed = parseOptions({ project: PROJECT, topic: 'events', timeout: '20s', endpoint, ...options });
  const context = makeContext();
  return { sink: new PubSubSink(parsed, context), context };
}

/** A peer with the topics `events` and `other`, and a sink for it, not opened. */
export async function makeSubject(options: object = {}): Promise<Subject> {
  const peer = await startPubSubPeer({ topics: ['events', 'other'] });
  return { peer, ...makeSink(peer.endpoint, options) };
}

/** The same, opened; both ends are closed after the test. */
export async function openSubject(options: object = {}): Promise<Subject> {
  const subject = await makeSubject(options);
  onTestFinished(async () => {
    await subject.sink.close(signal);
    await subject.peer.stop();
  });
  await subject.sink.open(signal);
  return subject;
}

/** The event's bytes as a consumer of the service's pipelines reads them. */
export function bodyOf({
  data,
  attributes,
}: {
  readonly data: Buffer;
  readonly attributes: Readonly<Record<string, string>>;
}): Buffer {
  return attributes['blob-codec'] === 'gzip' ? gunzipSync(data) : data;
}

export function idsAt(peer: PubSubPeer, topic = 'events'): string[] {
  return peer.messages(topic).map(({ attributes }) => attributes['idempotency-key'] ?? '');
}

/** All that the topics have taken, in order of arrival, topic by topic. */
export function arrivedAt(peer: PubSubPeer, ...topics: string[]): Arrived[] {
  return topics.flatMap((topic) =>
    peer.messages(topic).map((message) => ({
      id: message.attributes['idempotency-key'] ?? '',
      destination: topic === 'events' ? null : topic,
      body: bodyOf(message),
    })),
  );
}
