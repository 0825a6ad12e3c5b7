import { describe, expect, it, onTestFinished } from 'vitest';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { toFailure } from '../../src/sinks/event-hubs/failure.ts';
import { resultOf } from '../../src/sinks/failure.ts';
import { ArrayJournal, ManualClock, ScriptedSink, silentLog } from '../deliver/support.ts';
import { until } from '../support/until.ts';
import { idsAt, makeSubject, openSubject, type Subject } from './event-hubs-support.ts';
import { deliver, signal } from './support.ts';

interface Delivering extends Subject {
  readonly journal: ArrayJournal;
  readonly dispatcher: Dispatcher;
  /** Waits for it; the timers of the dispatcher fire as fast as they can. */
  readonly settled: (what: string, ask: () => boolean) => Promise<unknown>;
  readonly delivered: (sink: string, count: number) => Promise<unknown>;
}

/** The sink behind the real dispatcher; stopped after the test. */
async function startDelivering(options: object = {}, others: Record<string, Sink> = {}): Promise<Delivering> {
  const subject = await makeSubject({ compression: 'never', timeout: '3s', ...options });
  const journal = new ArrayJournal();
  const clock = new ManualClock();
  const sinks = new Map<string, Sink>(Object.entries({ hubs: subject.sink, ...others }));
  const dispatcher = new Dispatcher({
    journal,
    clock,
    log: silentLog,
    retry: { initial: 100, max: 1000, giveUpAfter: 0 },
    maxPending: 100,
    maxPendingBytes: 64 * 2 ** 20,
    targetsOf: () => [...sinks.keys()].map((sink) => ({ sink, destination: null })),
  });
  await Promise.all(Array.from(sinks, ([name, sink]) => dispatcher.add(name, sink)));
  dispatcher.begin();
  onTestFinished(async () => {
    await dispatcher.stop(AbortSignal.abort());
    await subject.peer.stop();
  });
  const settled = (what: string, ask: () => boolean): Promise<unknown> =>
    until(what, () => {
      clock.next();
      return ask();
    });
  const delivered = (sink: string, count: number): Promise<unknown> =>
    settled(`${count} events settled at ${sink}`, () => journal.cursors.get(sink) === count);
  return { ...subject, journal, dispatcher, settled, delivered };
}

/** Ids in the order they first came in: an event may come twice, never out of its user's order. */
const firstIds = (subject: Subject): string[] => [...new Set(idsAt(subject.peer))];

const put = (journal: ArrayJournal, from: number, to: number): void => {
  for (let n = from; n < to; n += 1) journal.put(contractEvent(n, { user: `user-${n % 3}` }));
};

const ofUser = (ids: readonly string[], user: number): string[] =>
  ids.filter((id) => Number(id.slice('msg_'.length)) % 3 === user);

const range = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `msg_${from + i}`);

describe('event-hubs sink in trouble', () => {
  it('fault 11: a broker that is down holds back its own sink only, and gets everything afterwards', async () => {
    const healthy = new ScriptedSink(() => DELIVERED);
    const subject = await startDelivering({}, { healthy });
    const { journal, peer, dispatcher } = subject;
    put(journal, 0, 20);
    await subject.delivered('hubs', 20);
    await peer.stop();
    put(journal, 20, 90);
    await subject.delivered('healthy', 90);
    await subject.settled('the trouble is noticed', () =>
      dispatcher.status().some(({ sink, lastError }) => sink === 'hubs' && lastError !== null),
    );
    expect(journal.cursors.get('hubs')).toBe(20);
    await peer.restart();
    await subject.delivered('hubs', 90);
    const ids = firstIds(subject);
    for (const user of [0, 1, 2]) expect(ofUser(ids, user)).toEqual(ofUser(range(0, 90), user));
    expect(journal.letters).toEqual([]);
  });

  it('fault 12: a busy hub is left alone for four seconds or more', async () => {
    const { peer, sink } = await openSubject();
    const { lift } = peer.inject({ kind: 'server-busy' });
    for (const result of await sink.send(deliver(1, 7), signal)) {
      expect(result).toMatchObject({ status: 'retry', sink: true, reason: /^event hub events: .*throttled/ });
      expect(result).toHaveProperty('delayMs', 4000);
    }
    lift();
    for (const { status } of await sink.send(deliver(1, 7), signal)) expect(status).toBe('delivered');
  });

  it('fault 12: a busy hub is not asked again for the rest of a batch', async () => {
    const { peer, sink } = await openSubject();
    const busy = peer.inject({ kind: 'server-busy' });
    const batch = Array.from({ length: 400 }, (_, n) => deliver(n, 1, { user: `user-${n}` })).flat();
    for (const result of await sink.send(batch, signal))
      expect(result).toMatchObject({ status: 'retry', sink: true });
    expect(busy.strikes).toBeLessThan(batch.length / 4);
  });

  it('fault 12: a busy hub is heard among the other errors of several attempts', () => {
    const busy = Object.assign(new Error('throttled'), { code: 'ServerBusyError' });
    const late = Object.assign(new Error('late'), { code: 'OperationTimeoutError' });
    for (const error of [
      new AggregateError([busy, late]),
      new AggregateError([late, new AggregateError([busy])]),
    ])
      expect(resultOf('event hub events', toFailure(error), 3)).toMatchObject({
        status: 'retry',
        sink: true,
        delayMs: 4000,
      });
  });

  it('tells what a hub has said in its own words', () => {
    const said = Object.assign(Object.create({ description: 'The link was detached.' }) as object, {
      value: [],
    });
    expect(toFailure(said)).toEqual({ kind: 'lost', reason: 'The link was detached.' });
    expect(toFailure('gone')).toEqual({ kind: 'lost', reason: 'gone' });
  });

  it('fault 12: being throttled again and again never makes a dead letter', async () => {
    const subject = await startDelivering();
    subject.peer.inject({ kind: 'server-busy', times: 20 });
    put(subject.journal, 0, 60);
    await subject.delivered('hubs', 60);
    expect(subject.journal.letters).toEqual([]);
    expect(firstIds(subject).toSorted()).toEqual(range(0, 60).toSorted());
  });

  it('fault 13: an event above the limit is seen here; its neighbours are delivered', async () => {
    const subject = await startDelivering({ maxEventBytes: '1MiB' });
    const { journal, peer } = subject;
    put(journal, 0, 5);
    // Fits into a mebibyte, but not together with its properties.
    journal.put(contractEvent(5, { user: 'user-2', body: Buffer.alloc(1_046_400, 'x') }));
    journal.put(contractEvent(6, { user: 'user-2', body: Buffer.alloc(2 ** 20 + 1, 'x') }));
    put(journal, 7, 12);
    await subject.delivered('hubs', 12);
    expect(journal.letters.map(({ event, code }) => `${event.id} ${code}`).toSorted()).toEqual([
      'msg_5 too_large',
      'msg_6 too_large',
    ]);
    expect(idsAt(peer).toSorted()).toEqual([...range(0, 5), ...range(7, 12)].toSorted());
  });

  it.each(['size-exceeded', 'reject'] as const)(
    'fault 14: the event that makes a hub refuse a batch (%s) is found by halving',
    async (kind) => {
      const subject = await startDelivering();
      const { journal, peer } = subject;
      const condition = 'com.microsoft:argument-error';
      peer.inject(
        kind === 'reject' ? { kind, condition, containing: 'msg_31' } : { kind, containing: 'msg_31' },
      );
      put(journal, 0, 60);
      await subject.delivered('hubs', 60);
      const code = kind === 'reject' ? 'rejected' : 'too_large';
      expect(journal.letters).toMatchObject([{ code, event: { id: 'msg_31' } }]);
      const ids = firstIds(subject);
      expect(ids).toHaveLength(59);
      for (const user of [0, 1, 2]) {
        const expected = ofUser(range(0, 60), user).filter((id) => id !== 'msg_31');
        expect(ofUser(ids, user)).toEqual(expected);
      }
    },
  );

  it('keeps every event, and each user’s order, through a mixture of troubles', async () => {
    const subject = await startDelivering({ compression: 'always', batch: { count: 20 }, timeout: '300ms' });
    const { journal, peer } = subject;
    for (let round = 0; round < 4; round += 1) {
      for (const kind of ['server-busy', 'drop', 'hang', 'latency'] as const) {
        peer.inject(
          kind === 'latency' ? { kind, ms: 5, times: 3 } : { kind, times: 2, stored: round % 2 === 0 },
        );
      }
      put(journal, round * 100, round * 100 + 100);
      await subject.settled('some of them', () => (journal.cursors.get('hubs') ?? 0) > round * 100 + 20);
      peer.cut();
      await subject.delivered('hubs', round * 100 + 100);
    }
    const ids = firstIds(subject);
    for (const user of [0, 1, 2]) expect(ofUser(ids, user)).toEqual(ofUser(range(0, 400), user));
    expect(journal.letters).toEqual([]);
  });

  it('fault 15: what was cut off before its confirmation is sent again under the same key', async () => {
    const subject = await startDelivering();
    const { journal, peer } = subject;
    const cut = peer.inject({ kind: 'drop', times: 1 });
    put(journal, 0, 1);
    await cut.struck;
    await subject.delivered('hubs', 1);
    expect(idsAt(peer)).toEqual(['msg_0', 'msg_0']);
    const [first, again] = peer.messages('events');
    expect(again?.properties).toEqual(first?.properties);
    expect(again?.body).toEqual(first?.body);
    put(journal, 1, 30);
    await subject.delivered('hubs', 30);
    expect(firstIds(subject).toSorted()).toEqual(range(0, 30).toSorted());
  });
});
