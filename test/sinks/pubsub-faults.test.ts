import { describe, expect, it, onTestFinished } from 'vitest';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { resultOf } from '../../src/sinks/failure.ts';
import { toFailure } from '../../src/sinks/pubsub/failure.ts';
import { ScriptedSink, type ArrayJournal } from '../deliver/support.ts';
import { PROJECT } from '../support/pubsub-peer/peer.ts';
import type { PeerMessage } from '../support/pubsub-peer/topics.ts';
import { startDelivering, type Delivering } from './delivering.ts';
import { bodyOf, idsAt, makeSubject, openSubject, type Subject } from './pubsub-support.ts';
import { deliver, signal } from './support.ts';

const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;
const UNAVAILABLE = 14;
const TOPIC = `topic projects/${PROJECT}/topics/events`;

/** The sink behind the real dispatcher. */
async function start(options: object = {}, others: Record<string, Sink> = {}): Promise<Subject & Delivering> {
  const subject = await makeSubject({ timeout: '20s', ...options });
  onTestFinished(() => subject.peer.stop());
  return { ...subject, ...(await startDelivering({ topics: subject.sink, ...others })) };
}

const put = (journal: ArrayJournal, from: number, to: number): void => {
  for (let n = from; n < to; n += 1) journal.put(contractEvent(n, { user: `user-${n % 3}` }));
};

/** Ids in the order they first came in: an event may come twice, never out of its user's order. */
const firstIds = (subject: Subject): string[] => [...new Set(idsAt(subject.peer))];

const range = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `msg_${from + i}`);

const ofUser = (ids: readonly string[], user: number): string[] =>
  ids.filter((id) => Number(id.slice('msg_'.length)) % 3 === user);

function expectInOrder(ids: readonly string[], expected: readonly string[]): void {
  expect(ids).toHaveLength(expected.length);
  for (const user of [0, 1, 2]) expect(ofUser(ids, user)).toEqual(ofUser(expected, user));
}

const isPoison = ({ attributes }: PeerMessage): boolean => attributes['idempotency-key'] === 'msg_31';

describe('pubsub sink in trouble', () => {
  it('fault 11: a service that is down holds back its own sink only, and gets everything afterwards', async () => {
    const healthy = new ScriptedSink(() => DELIVERED);
    const subject = await start({ ordering: true }, { healthy });
    const { journal, peer, dispatcher } = subject;
    put(journal, 0, 20);
    await subject.delivered('topics', 20);
    await peer.stop();
    put(journal, 20, 90);
    await subject.delivered('healthy', 90);
    await subject.settled('the trouble is noticed', () =>
      dispatcher.status().some(({ sink, lastError }) => sink === 'topics' && lastError !== null),
    );
    expect(journal.cursors.get('topics')).toBe(20);
    await peer.restart();
    await subject.delivered('topics', 90);
    expectInOrder(firstIds(subject), range(0, 90));
    expect(journal.letters).toEqual([]);
  });

  it('fault 12: RESOURCE_EXHAUSTED pauses the sink, for as long as the service says', async () => {
    const { peer, sink } = await openSubject();
    const fault = { kind: 'status', code: RESOURCE_EXHAUSTED, times: 1 } as const;
    peer.inject(fault);
    for (const result of await sink.send(deliver(1, 3), signal)) {
      expect(result).toMatchObject({ status: 'retry', sink: true, delayMs: 1000 });
      expect(result).toHaveProperty('reason', expect.stringMatching(`^${TOPIC}: .*RESOURCE_EXHAUSTED`));
    }
    peer.inject({ ...fault, retryAfter: 7500 });
    for (const result of await sink.send(deliver(1, 3), signal))
      expect(result).toHaveProperty('delayMs', 7500);
    for (const { status } of await sink.send(deliver(1, 3), signal)) expect(status).toBe('delivered');
  });

  it('fault 12: RESOURCE_EXHAUSTED is heard in the text of a time-out, as the SDK reports it', () => {
    const text = 'Total timeout of API exceeded 600000 milliseconds; 8 RESOURCE_EXHAUSTED: quota';
    const error = Object.assign(new Error(text), { code: 4 });
    expect(resultOf('topic t', toFailure(error), 3)).toMatchObject({
      status: 'retry',
      sink: true,
      delayMs: 1000,
    });
  });

  it('fault 12: being throttled again and again never makes a dead letter', async () => {
    const subject = await start();
    subject.peer.inject({ kind: 'status', code: RESOURCE_EXHAUSTED, times: 20 });
    put(subject.journal, 0, 60);
    await subject.delivered('topics', 60);
    expect(subject.journal.letters).toEqual([]);
    expect(idsAt(subject.peer).toSorted()).toEqual(range(0, 60).toSorted());
  });

  it.each([
    { ordering: false, compression: 'never' },
    { ordering: true, compression: 'auto' },
  ])('fault 13: an event above 10 MB is seen here; its neighbours are delivered (%j)', async (options) => {
    const subject = await start(options);
    const { journal, peer } = subject;
    put(journal, 0, 5);
    // Under the limit by itself, above it with its attributes.
    journal.put(contractEvent(5, { user: 'user-2', body: incompressible(9_999_900) }));
    journal.put(contractEvent(6, { user: 'user-0', body: incompressible(11_000_000) }));
    journal.put(contractEvent(7, { user: 'user-1', body: incompressible(9_990_000) }));
    put(journal, 8, 12);
    await subject.delivered('topics', 12);
    const letters = journal.letters.map(({ event, code }) => `${event.id} ${code}`);
    expect(letters.toSorted()).toEqual(['msg_5 too_large', 'msg_6 too_large']);
    expect(peer.requests.flatMap(({ messages }) => messages)).toHaveLength(10);
    expect(idsAt(peer).toSorted()).toEqual([...range(0, 5), ...range(7, 12)].toSorted());
  });

  it('fault 13: a body above the limit that fits once it is compressed is delivered', async () => {
    const { peer, sink } = await openSubject();
    const body = Buffer.alloc(12_000_000, '{}');
    const [result] = await sink.send(deliver(1, 1, { body }), signal);
    expect(result).toEqual(DELIVERED);
    expect(bodyOf(peer.messages('events')[0]!).equals(body)).toBe(true);
  });

  it.each([
    { ordering: false, details: 'schema', code: 'rejected' },
    { ordering: true, details: 'schema', code: 'rejected' },
    { ordering: false, details: 'The value for request_size is too large', code: 'too_large' },
  ])(
    'fault 14: the event that makes a topic refuse a request is found ($details, ordering $ordering)',
    async ({ ordering, details, code }) => {
      const subject = await start({ ordering });
      const { journal, peer } = subject;
      peer.inject({ kind: 'status', code: INVALID_ARGUMENT, details, holding: isPoison });
      put(journal, 0, 60);
      await subject.delivered('topics', 60);
      expect(journal.letters).toMatchObject([{ code, event: { id: 'msg_31' } }]);
      expectInOrder(
        idsAt(peer),
        range(0, 60).filter((id) => id !== 'msg_31'),
      );
    },
  );

  it.each([false, true])(
    'fault 15: what was cut off before its confirmation is sent again under the same key (ordering %s)',
    async (ordering) => {
      const subject = await start({ ordering });
      const { journal, peer } = subject;
      const cut = peer.inject({ kind: 'drop', times: 1 });
      put(journal, 0, 1);
      await cut.struck;
      await subject.delivered('topics', 1);
      expect(idsAt(peer)).toEqual(['msg_0', 'msg_0']);
      const [first, again] = peer.messages('events');
      expect({ ...again, messageId: '', publishedAt: 0 }).toEqual({
        ...first,
        messageId: '',
        publishedAt: 0,
      });
      put(journal, 1, 30);
      await subject.delivered('topics', 30);
      expect(firstIds(subject).toSorted()).toEqual(range(0, 30).toSorted());
    },
  );

  it.each([true, false])(
    'keeps every event, and with ordering each user’s order, through a mixture of troubles (ordering %s)',
    async (ordering) => {
      const subject = await start({ ordering, compression: 'always', timeout: '300ms' });
      const { journal, peer } = subject;
      for (let round = 0; round < 3; round += 1) {
        peer.inject({ kind: 'status', code: RESOURCE_EXHAUSTED, times: 2 });
        peer.inject({ kind: 'drop', times: 2, stored: round % 2 === 0 });
        peer.inject({ kind: 'hang', times: 1, stored: round % 2 === 1 });
        peer.inject({ kind: 'status', code: UNAVAILABLE, times: 2 });
        put(journal, round * 100, round * 100 + 100);
        await subject.settled('some of them', () => (journal.cursors.get('topics') ?? 0) > round * 100 + 10);
        peer.cut();
        await subject.delivered('topics', round * 100 + 100);
      }
      const ids = firstIds(subject);
      if (ordering) expectInOrder(ids, range(0, 300));
      else expect(ids.toSorted()).toEqual(range(0, 300).toSorted());
      expect(journal.letters).toEqual([]);
    },
  );
});

function incompressible(length: number): Buffer {
  const body = Buffer.alloc(length);
  let state = 1;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    body[at] = state >>> 24;
  }
  return body;
}
