import { status } from '@grpc/grpc-js';
import fc from 'fast-check';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { parseOptions as hubsOptions } from '../../src/sinks/event-hubs/config.ts';
import { EventHubsSink } from '../../src/sinks/event-hubs/sink.ts';
import { parseOptions as httpOptions } from '../../src/sinks/http/config.ts';
import { HttpSink } from '../../src/sinks/http/sink.ts';
import type { Fault as HubFault } from '../support/amqp-peer/faults.ts';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import type { Fault as TopicFault } from '../support/pubsub-peer/faults.ts';
import { startPubSubPeer } from '../support/pubsub-peer/peer.ts';
import { runCount } from '../support/run-count.ts';
import { arrivedAt, makeTopicSink } from './broker-support.ts';
import { histories, wrongIn, type Place, type Subject } from './fault-histories.ts';
import { Endpoint, SECRET, type Reply } from './http-support.ts';
import { makeContext } from './support.ts';

const named = fc.constantFrom;
/** Bytes of the largest body of http, of the largest request or message elsewhere, and what stands around a body there at most. */
const [LARGEST, AROUND] = [4096, 600];
const sizes = { small: LARGEST - AROUND, tooLarge: LARGEST };
const times = fc.integer({ min: 1, max: 3 });

/** What becomes of a request; `stored`: it is taken all the same. */
type HttpFault = { readonly times: number } & (
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter: string | null }
  | { readonly kind: 'hang' | 'drop'; readonly stored: boolean }
  /** The status is sent, and then the connection is cut. */
  | { readonly kind: 'torn' }
  | { readonly kind: 'late'; readonly ms: number }
);

const HTTP: Subject<HttpFault> = {
  open: openHttp,
  sizes: { small: LARGEST, tooLarge: LARGEST + 1 },
  inOrder: true,
  fault: fc.oneof(
    fc.record({
      kind: named('status'),
      // All that say nothing about the event.
      status: named(302, 401, 403, 404, 408, 429, 500, 502, 503, 504),
      retryAfter: named(null, '0', '1', '60', 'soon'),
      times,
    }),
    fc.record({ kind: named('hang', 'drop'), stored: fc.boolean(), times }),
    fc.record({ kind: named('torn'), times }),
    fc.record({ kind: named('late'), ms: named(1, 50, 400), times }),
  ),
};

const HUBS: Subject<HubFault> = {
  open: openHub,
  sizes,
  inOrder: true,
  fault: fc.oneof(
    fc.record({ kind: named('server-busy', 'release', 'modify'), times }),
    fc.record({ kind: named('drop', 'hang', 'detach'), stored: fc.boolean(), times }),
    fc.record({ kind: named('latency'), ms: named(1, 20, 400), times }),
    fc.record({ kind: named('unauthorized'), times }),
  ),
};

/** All that say nothing about the event. */
const CODES = [
  status.CANCELLED,
  status.UNKNOWN,
  status.DEADLINE_EXCEEDED,
  status.NOT_FOUND,
  status.PERMISSION_DENIED,
  status.RESOURCE_EXHAUSTED,
  status.FAILED_PRECONDITION,
  status.ABORTED,
  status.INTERNAL,
  status.UNAVAILABLE,
  status.UNAUTHENTICATED,
];

const topics = (ordering: boolean): Subject<TopicFault> => ({
  open: () => openTopic(ordering),
  sizes,
  inOrder: ordering,
  fault: fc.oneof(
    fc.record({ kind: named('status'), code: named(...CODES), times }),
    fc.record({ kind: named('drop', 'hang'), stored: fc.boolean(), times }),
  ),
});

async function openHttp(): Promise<Place<HttpFault>> {
  const endpoint = await new Endpoint().start();
  const arrived: { id: string; body: Buffer }[] = [];
  const poisoned = new Map<string, number>();
  let faults: { readonly fault: HttpFault; left: number }[] = [];
  endpoint.reply = (_path, body, headers): Reply => {
    const id = String(headers['idempotency-key']);
    const refused = poisoned.get(id);
    if (refused !== undefined) return refused;
    const entry = faults.find(({ left }) => left > 0);
    if (entry !== undefined) entry.left -= 1;
    return answerOf(entry?.fault ?? null, () => arrived.push({ id, body }));
  };
  const options = { url: endpoint.url('/'), secrets: [SECRET], privateNetworks: ['127.0.0.1'] };
  const parsed = httpOptions({ ...options, timeout: '300ms', maxEventBytes: LARGEST });
  return {
    makeSink: (clock) => new HttpSink(parsed, { ...makeContext(), clock }),
    inject: (what) => {
      const entry = { fault: what, left: what.times };
      faults.push(entry);
      return { lift: () => (faults = faults.filter((each) => each !== entry)) };
    },
    poison: (id, code) => poisoned.set(id, code === 'too_large' ? 413 : 422),
    cut: () => endpoint.cut(),
    stop: () => endpoint.stop(),
    restart: async () => void (await endpoint.start()),
    arrived: () => arrived,
  };
}

function answerOf(what: HttpFault | null, store: () => void): Reply {
  if (what?.kind === 'status')
    return [what.status, what.retryAfter === null ? {} : { 'retry-after': what.retryAfter }];
  if (what?.kind === 'hang' || what?.kind === 'drop') {
    if (what.stored) store();
    return what.kind === 'hang' ? 'hang' : (response) => response.destroy();
  }
  store();
  if (what?.kind === 'torn') return tear;
  if (what?.kind === 'late')
    return (response) => void setTimeout(() => response.writeHead(204).end(), what.ms).unref();
  return 204;
}

function tear(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': 10 }).write('half', () => response.destroy());
}

async function openHub(): Promise<Place<HubFault>> {
  const peer = await startAmqpPeer({ hubs: ['events'], maxMessageBytes: LARGEST });
  const options = {
    compression: 'never',
    timeout: '300ms',
    maxEventBytes: 2 * LARGEST,
    batch: { count: 20 },
  };
  const parsed = hubsOptions({ connectionString: peer.connectionString, hub: 'events', ...options });
  return {
    ...peerPlace(peer),
    makeSink: (clock) => new EventHubsSink(parsed, { ...makeContext(), clock }),
    poison: (id, code) => {
      const condition = 'com.microsoft:argument-error';
      const how: HubFault = code === 'rejected' ? { kind: 'reject', condition } : { kind: 'size-exceeded' };
      peer.injectFirst({ ...how, containing: id });
    },
    arrived: () => arrivedAt(peer, 'events'),
  };
}

async function openTopic(ordering: boolean): Promise<Place<TopicFault>> {
  const peer = await startPubSubPeer({ topics: ['events'] });
  const options = { compression: 'never', timeout: '300ms', maxEventBytes: LARGEST, ordering };
  return {
    ...peerPlace(peer),
    makeSink: () => makeTopicSink(peer.endpoint, options).sink,
    poison: (id, code) =>
      peer.injectFirst({
        kind: 'status',
        code: status.INVALID_ARGUMENT,
        details: code === 'too_large' ? 'request_size is too large' : 'refused',
        holding: ({ attributes }) => attributes['idempotency-key'] === id,
      }),
    arrived: () => arrivedAt(peer, 'events'),
  };
}

function peerPlace<Fault>(peer: Pick<Place<Fault>, 'inject' | 'cut' | 'stop' | 'restart'>) {
  return {
    inject: (fault: Fault) => peer.inject(fault),
    cut: () => peer.cut(),
    stop: () => peer.stop(),
    restart: () => peer.restart(),
  };
}

async function holds<Fault>(subject: Subject<Fault>, quick: number): Promise<void> {
  const property = fc.asyncProperty(histories(subject), async (steps) => {
    expect(await wrongIn(subject, steps)).toEqual([]);
  });
  await fc.assert(property, { numRuns: runCount({ quick: quick, long: 5 * quick }) });
}

test.each<[string, () => Promise<void>]>([
  ['http: each event arrives in the order of its user', () => holds(HTTP, 20)],
  ['Event Hubs: each event arrives in the order of its user', () => holds(HUBS, 5)],
  ['Pub/Sub: each event arrives in the order of its user', () => holds(topics(true), 5)],
  ['Pub/Sub without ordering: each event arrives', () => holds(topics(false), 5)],
])('%s, or is a dead letter, whatever the far side does', async (_, check) => {
  await expect(check()).resolves.toBeUndefined();
});
