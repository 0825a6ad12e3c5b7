import { gunzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { Sink } from '../../src/core/sink.ts';
import type { Arrived } from '../../src/sinks/contract-checks.ts';
import { parseOptions as hubOptions } from '../../src/sinks/event-hubs/config.ts';
import { EventHubsSink } from '../../src/sinks/event-hubs/sink.ts';
import { parseOptions as topicOptions } from '../../src/sinks/pubsub/config.ts';
import { PubSubSink } from '../../src/sinks/pubsub/sink.ts';
import { startAmqpPeer, type AmqpPeer, type AmqpPeerOptions } from '../support/amqp-peer/peer.ts';
import { PROJECT, startPubSubPeer, type PubSubPeer } from '../support/pubsub-peer/peer.ts';
import { makeContext, signal, type TestContext } from './support.ts';

export interface Subject<Peer, S extends Sink> {
  readonly peer: Peer;
  readonly sink: S;
  readonly context: TestContext;
}
export type HubSubject = Subject<AmqpPeer, EventHubsSink>;
export type TopicSubject = Subject<PubSubPeer, PubSubSink>;

/** A peer with the hubs `events` and `other`, and a sink for it, not opened. */
export async function makeHub(options = {}, more: Partial<AmqpPeerOptions> = {}): Promise<HubSubject> {
  const peer = await startAmqpPeer({ hubs: ['events', 'other'], ...more });
  const { connectionString } = peer;
  const parsed = hubOptions({ connectionString, hub: 'events', timeout: '3s', ...options });
  const context = makeContext();
  return { peer, context, sink: new EventHubsSink(parsed, context) };
}

/** A sink for an endpoint, not opened. */
export function makeTopicSink(endpoint: string, options = {}): Pick<TopicSubject, 'sink' | 'context'> {
  const parsed = topicOptions({ project: PROJECT, topic: 'events', timeout: '20s', endpoint, ...options });
  const context = makeContext();
  return { sink: new PubSubSink(parsed, context), context };
}

/** A peer with the topics `events` and `other`, and a sink for it, not opened. */
export async function makeTopic(options = {}): Promise<TopicSubject> {
  const peer = await startPubSubPeer({ topics: ['events', 'other'] });
  return { peer, ...makeTopicSink(peer.endpoint, options) };
}

/** The same, opened; both ends are closed after the test. */
export async function opened<S extends HubSubject | TopicSubject>(making: Promise<S>): Promise<S> {
  const subject = await making;
  onTestFinished(async () => {
    await subject.sink.close(signal);
    await subject.peer.stop();
  });
  await subject.sink.open(signal);
  return subject;
}

export const openHub = (...given: Parameters<typeof makeHub>) => opened(makeHub(...given));
export const openTopic = (...given: Parameters<typeof makeTopic>) => opened(makeTopic(...given));

/** The bytes of an event, as a consumer gets at them. */
export function unpacked(body: Buffer, encoding: unknown): Buffer {
  return encoding === 'gzip' ? gunzipSync(body) : body;
}

/** All that the hubs or topics have taken, in order of arrival, one after another. */
export function arrivedAt(peer: AmqpPeer | PubSubPeer, ...places: string[]): Arrived[] {
  return places.flatMap((place) =>
    peer.messages(place).map((message) => {
      const [bytes, said, encoding] =
        'data' in message
          ? [message.data, message.attributes, 'blob-codec']
          : [message.body, message.properties, 'content-encoding'];
      const id = said['idempotency-key'] ?? '';
      return { id, destination: place === 'events' ? null : place, body: unpacked(bytes, said[encoding]) };
    }),
  );
}

export function idsAt(peer: AmqpPeer | PubSubPeer, place = 'events'): string[] {
  return arrivedAt(peer, place).map(({ id }) => id);
}
