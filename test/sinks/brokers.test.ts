import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DELIVERED } from '../../src/core/sink.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { toFailure as hubFailure } from '../../src/vendors/event-hubs/failure.ts';
import { resultOf } from '../../src/vendors/failure.ts';
import { toFailure as topicFailure } from '../../src/vendors/pubsub/failure.ts';
import type { ArrayJournal } from '../deliver/support.ts';
import { PROJECT } from '../support/pubsub-peer/peer.ts';
import { until, within } from '../support/until.ts';
import { startDelivering } from './delivering.ts';
import {
  arrivedAt,
  type HubSubject,
  idsAt,
  makeHub,
  makeTopic,
  opened,
  openHub,
  openTopic,
  type TopicSubject,
} from './broker-support.ts';
import { deliver, idsFrom, signal } from './support.ts';

const put = (journal: ArrayJournal, from: number, to: number): void => {
  for (let n = from; n < to; n += 1) journal.put(contractEvent(n, { user: `user-${n % 3}` }));
};

describe.each<[string, (options?: object) => Promise<HubSubject | TopicSubject>]>([
  ['Event Hubs', makeHub],
  ['Pub/Sub with ordering', (options) => makeTopic({ ordering: true, ...options })],
  ['Pub/Sub', makeTopic],
])('a sink of %s', (name, make) => {
  it('waits for what is on the way when it closes', async () => {
    const { sink, peer } = await opened(make());
    const sending = sink.send(deliver(1, 200), signal);
    await sink.close(signal);
    expect(new Set((await sending).map(({ status }) => status))).toEqual(new Set(['delivered']));
    expect(idsAt(peer)).toHaveLength(200);
    if (name !== 'Event Hubs')
      expect(await sink.send(deliver(1, 1), signal)).toMatchObject([{ status: 'retry' }]);
  });

  it('stops waiting as soon as its signal aborts, and claims nothing', async () => {
    const { peer, sink } = await opened(make({ timeout: '60s' }));
    const { struck } = peer.inject({ kind: 'hang' });
    const stop = new AbortController();
    const sending = sink.send(deliver(1, 20), stop.signal);
    await struck;
    stop.abort();
    for (const { status } of await within('the answer', sending)) expect(status).toBe('retry');
  });

  it('replaces a connection that does not answer any more', async () => {
    const { peer, sink, context } = await opened(make({ timeout: '1s' }));
    const { lift } = peer.inject({ kind: 'hang' });
    // One of several time-outs in a row; with Event Hubs each user's events wait by themselves.
    for (const count of name === 'Event Hubs' ? [7] : [1, 1, 1])
      for (const result of await sink.send(deliver(1, count), signal))
        expect(result).toMatchObject({ status: 'retry', sink: true });
    expect(context.lines).toMatchObject([{ level: 'warn' }]);
    lift();
    // On a busy machine a connection, too, may take longer than that.
    await until('the new one to take it', async () => {
      const [result] = await sink.send(deliver(1, 1), signal);
      return result?.status === 'delivered';
    });
  });
});

describe('fault 12: a broker that throttles', () => {
  const PAUSED = { status: 'retry', sink: true };

  it('Event Hubs is left alone for four seconds or more, and not asked again for the rest of a batch', async () => {
    const { peer, sink } = await openHub();
    const busy = peer.inject({ kind: 'server-busy' });
    const batch = Array.from({ length: 400 }, (_, n) => deliver(n, 1, { user: `user-${n}` })).flat();
    const reason = /^event hub events: .*throttled/;
    for (const result of await sink.send(batch, signal))
      expect(result).toMatchObject({ ...PAUSED, delayMs: 4000, reason });
    expect(busy.strikes).toBeLessThan(batch.length / 4);
    busy.lift();
    for (const { status } of await sink.send(deliver(1, 7), signal)) expect(status).toBe('delivered');
  });

  it('Pub/Sub is left alone for a second, or as long as it says', async () => {
    const { peer, sink } = await openTopic();
    const fault = { kind: 'status', code: 8, times: 1 } as const;
    const reason = expect.stringMatching(
      `^topic projects/${PROJECT}/topics/events: .*RESOURCE_EXHAUSTED`,
    ) as string;
    peer.inject(fault);
    for (const result of await sink.send(deliver(1, 3), signal))
      expect(result).toMatchObject({ ...PAUSED, delayMs: 1000, reason });
    peer.inject({ ...fault, retryAfter: 7500 });
    for (const result of await sink.send(deliver(1, 3), signal))
      expect(result).toHaveProperty('delayMs', 7500);
    for (const { status } of await sink.send(deliver(1, 3), signal)) expect(status).toBe('delivered');
  });

  const busy = Object.assign(new Error('throttled'), { code: 'ServerBusyError' });
  const late = Object.assign(new Error('late'), { code: 'OperationTimeoutError' });
  // As the SDK reports it.
  const timedOut = 'Total timeout of API exceeded 600000 milliseconds; 8 RESOURCE_EXHAUSTED: quota';

  it.each([
    ['another error', hubFailure(new AggregateError([busy, late])), 4000],
    ['errors of several attempts', hubFailure(new AggregateError([late, new AggregateError([busy])])), 4000],
    ['the text of a time-out', topicFailure(Object.assign(new Error(timedOut), { code: 4 })), 1000],
  ])('is heard among %s', (_, failure, delayMs) => {
    expect(resultOf('there', failure, 3)).toMatchObject({ ...PAUSED, delayMs });
  });

  it('keeps its own text otherwise', () => {
    const said = Object.create({ description: 'The link was detached.' }) as object;
    expect(hubFailure(Object.assign(said, { value: [] }))).toEqual({
      kind: 'lost',
      reason: 'The link was detached.',
    });
    expect(hubFailure('gone')).toEqual({ kind: 'lost', reason: 'gone' });
  });
});

describe('fault 13: an event above 10 MB', () => {
  it.each([
    { ordering: false, compression: 'never' },
    { ordering: true, compression: 'auto' },
  ])('is seen before Pub/Sub is asked; its neighbours are delivered (%j)', async (options) => {
    const { peer, sink } = await makeTopic(options);
    onTestFinished(() => peer.stop());
    const { journal, delivered } = await startDelivering({ topics: sink });
    put(journal, 0, 5);
    // Under the limit by itself, above it with its attributes.
    for (const [n, bytes] of [9_999_900, 11_000_000, 9_990_000].entries())
      journal.put(contractEvent(5 + n, { user: `user-${n}`, body: randomBytes(bytes) }));
    put(journal, 8, 12);
    await delivered('topics', 12);
    const dead = journal.deadLetters.map(({ event, code }) => `${event.id} ${code}`);
    expect(dead.toSorted()).toEqual(['msg_5 too_large', 'msg_6 too_large']);
    expect(peer.requests.flatMap(({ messages }) => messages)).toHaveLength(10);
    expect(idsAt(peer).toSorted()).toEqual([...idsFrom(0, 5), ...idsFrom(7, 5)].toSorted());
  });

  it('is delivered when it is small enough after compression', async () => {
    const { peer, sink } = await openTopic();
    const body = Buffer.alloc(12_000_000, '{}');
    expect(await sink.send(deliver(1, 1, { body }), signal)).toEqual([DELIVERED]);
    expect(arrivedAt(peer, 'events')[0]?.body.equals(body)).toBe(true);
  });
});
