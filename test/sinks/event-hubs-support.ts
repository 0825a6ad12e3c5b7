import { gunzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { startAmqpPeer, type AmqpPeer, type AmqpPeerOptions } from '../support/amqp-peer/peer.ts';
import type { PeerMessage } from '../support/amqp-peer/hub.ts';
import { parseOptions } from '../../src/sinks/event-hubs/config.ts';
import { EventHubsSink } from '../../src/sinks/event-hubs/sink.ts';
import type { Arrived } from '../../src/sinks/contract-checks.ts';
import { makeContext, signal, type TestContext } from './support.ts';

export interface Subject {
  readonly peer: AmqpPeer;
  readonly sink: EventHubsSink;
  readonly context: TestContext;
}

/** A peer with the hubs `events` and `other`, and a sink for it, not opened. */
export async function makeSubject(
  options: object = {},
  peerOptions: Partial<AmqpPeerOptions> = {},
): Promise<Subject> {
  const peer = await startAmqpPeer({ hubs: ['events', 'other'], ...peerOptions });
  const { connectionString } = peer;
  const parsed = parseOptions({ connectionString, hub: 'events', timeout: '3s', ...options });
  const context = makeContext();
  return { peer, context, sink: new EventHubsSink(parsed, context) };
}

/** The same, opened; both ends are closed after the test. */
export async function openSubject(
  options: object = {},
  peerOptions: Partial<AmqpPeerOptions> = {},
): Promise<Subject> {
  const subject = await makeSubject(options, peerOptions);
  onTestFinished(async () => {
    await subject.sink.close(signal);
    await subject.peer.stop();
  });
  await subject.sink.open(signal);
  return subject;
}

/** The bytes of the event, as a consumer gets at them. */
export function bodyOf({ body, properties }: Pick<PeerMessage, 'body' | 'properties'>): Buffer {
  return properties['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
}

export function idsAt(peer: AmqpPeer, hub = 'events'): string[] {
  return peer.messages(hub).map(({ properties }) => properties['idempotency-key'] ?? '');
}

/** All that the hubs have taken, in order of arrival, hub by hub. */
export function arrivedAt(peer: AmqpPeer, ...hubs: string[]): Arrived[] {
  return hubs.flatMap((hub) =>
    peer.messages(hub).map((message) => ({
      id: message.properties['idempotency-key'] ?? '',
      destination: hub === 'events' ? null : hub,
      body: bodyOf(message),
    })),
  );
}
