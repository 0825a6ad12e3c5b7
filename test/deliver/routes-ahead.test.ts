import { expect, test } from 'vitest';
import type { Route } from '../../src/core/route.ts';
import type { RouteRecord } from '../../src/core/route-record.ts';
import type { Sink } from '../../src/core/sink.ts';
import type { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { SettledAhead, settledAheadOf } from '../../src/deliver/settled-ahead.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { AcceptedRoutes } from '../../src/deliver/routes/accepted.ts';
import { makeEvent } from '../support/events.ts';
import { inlineJournal } from '../support/inline-journal.ts';
import { tempFolder } from '../sinks/support.ts';
import { makeDispatcher } from './running.ts';
import { LIMITS, ManualClock } from './support.ts';

const route = (match: string, ...to: [string, string | null][]): Route => ({
  match: [match],
  to: to.map(([sink, destination]) => ({ sink, destination })),
});

const redacted = (sink: string): Route => ({
  match: ['t.'],
  to: [
    {
      sink,
      destination: 'y',
      redactions: [
        {
          remove: ['/data/secret'],
          fields: { type: 'event_type', team: 'team_id', user: 'user_id', clientUser: 'client_user_id' },
        },
      ],
    },
  ],
});

class World {
  readonly folder = tempFolder();
  readonly clock = new ManualClock();
  readonly got: string[] = [];
  readonly down = new Set<string>();
  readonly refuses = new Set<string>();
  accepted!: AcceptedRoutes;
  journal!: SqliteJournal;
  dispatcher!: Dispatcher;
  killJournal!: () => void;
  async start(routes: readonly Route[], sinks: readonly string[]): Promise<void> {
    ({ journal: this.journal, kill: this.killJournal } = inlineJournal(this.folder, this.clock));
    this.dispatcher = makeDispatcher({
      journal: this.journal,
      clock: this.clock,
      retry: { initial: 10, max: 100, giveUpAfter: 0 },
      maxPending: 1000,
      targetsOf: (event) => this.accepted.targetsOf(event),
      routes: () => this.accepted,
    });
    this.accepted = new AcceptedRoutes(await this.journal.acceptUnder(routes));
    for (const name of sinks) await this.dispatcher.add(name, this.sink(name));
    this.dispatcher.begin();
    await this.go(30);
  }
  life = 0;
  sink(name: string): Sink {
    const { life } = this;
    return {
      limits: { ...LIMITS, batchCount: 1, inFlight: 4, batchBy: 'destination' },
      open: () => Promise.resolve(),
      send: (batch) =>
        Promise.resolve(
          batch.map(({ event, destination }) => {
            const at = `${name}:${destination}`;
            if (life !== this.life) return { status: 'retry', reason: 'killed' } as const;
            if (this.down.has(at)) return { status: 'retry', reason: 'down' } as const;
            if (this.refuses.has(at)) return { status: 'refused', code: 'bad', reason: 'no' } as const;
            this.got.push(`${event.id}@${at}`);
            return { status: 'delivered' } as const;
          }),
        ),
      close: () => Promise.resolve(),
    };
  }
  async accept(id: string, type: string): Promise<void> {
    await this.journal.accept(makeEvent({ id, type, user: id }));
    await this.go(20);
  }
  /** As LiveSinks and Delivery do it. */
  async reload(routes: readonly Route[], changed: readonly string[]): Promise<void> {
    for (const name of changed) {
      await this.dispatcher.remove(name, new AbortController().signal);
      await this.dispatcher.add(name, this.sink(name));
    }
    this.accepted = new AcceptedRoutes(await this.journal.acceptUnder(routes));
    this.dispatcher.begin();
    await this.go(40);
  }
  async go(turns: number): Promise<void> {
    for (let i = 0; i < turns; i += 1) {
      for (let k = 0; k < 4; k += 1) await new Promise((r) => setImmediate(r));
      this.clock.next();
    }
  }
  kill(): void {
    this.life += 1;
    this.killJournal();
  }
  async stop(): Promise<void> {
    await this.dispatcher.stop(new AbortController().signal);
    await this.journal.close();
  }
}

const A = [route('u.', ['a', 'x']), route('*', ['b', null])];
const B = [route('t.', ['a', 'y']), ...A];

/** Routes A, then B, under which `e2` comes to wait, then A again. */
async function waitedUnderB(): Promise<World> {
  const w = new World();
  await w.start(A, ['a', 'b']);
  await w.accept('e1', 'u.1');
  await w.reload(B, ['a']);
  w.down.add('a:y');
  await w.accept('e2', 't.1');
  await w.reload(A, ['a']);
  return w;
}

test('what waits since routes were in force the first time is sent when they are again, though nothing came in between', async () => {
  const w = await waitedUnderB();
  await w.reload(B, ['a']);
  w.down.clear();
  await w.go(60);
  expect(w.got).toContain('e2@a:y');
});

test('or by others, after a restart', async () => {
  const w = await waitedUnderB();
  await w.stop();
  await w.start([route('t.', ['a', 'z']), ...A], ['a', 'b']);
  w.down.clear();
  await w.go(60);
  expect(w.got.filter((n) => n.startsWith('e2@a'))).toEqual(['e2@a:z']);
});

test('a dead letter of an event that is behind the note says nothing of its other targets', () => {
  const R0 = [route('t.', ['a', 'x'])];
  const R1 = [route('t.', ['a', 'x'], ['a', 'y'])];
  const record: RouteRecord = {
    eras: [
      { after: 0, tables: [R0] },
      { after: 10, tables: [R1] },
    ],
    successors: [],
    left: [],
    forgotten: false,
  };
  const before = new AcceptedRoutes({ ...record, eras: record.eras.slice(0, 1) });
  const accepted = new AcceptedRoutes(record);
  const note = JSON.stringify([{ upTo: 10, routes: before.name, lanes: [['x', 4, '']] }]);
  const recall = new SettledAhead('a', { note, died: [['x', 11]] }, () => accepted);
  const event = { seq: 11, type: 't.1', handling: {} };
  expect(recall.open(event, accepted.targetsOf(event)).map((t) => t.destination)).toEqual(['y']);
});

test('nor when it was killed between the dead letter and the next note', async () => {
  const R0 = [route('t.', ['a', 'x'])];
  const R1 = [route('t.', ['a', 'x'], ['a', 'y'])];
  const w = new World();
  await w.start(R0, ['a']);
  w.down.add('a:x');
  await w.accept('e1', 't.1');
  await w.journal.flush();
  w.down.clear();
  w.down.add('a:y');
  w.refuses.add('a:x');
  // A reload, and at once an event that dies at x: for a note there is no time.
  await w.dispatcher.remove('a', AbortSignal.abort());
  await w.dispatcher.add('a', w.sink('a'));
  w.accepted = new AcceptedRoutes(await w.journal.acceptUnder(R1));
  w.dispatcher.begin();
  await w.journal.accept(makeEvent({ id: 'e2', type: 't.1', user: 'e2' }));
  for (let i = 0; i < 40; i += 1) await new Promise((r) => setImmediate(r));
  w.kill();
  await w.start(R1, ['a']);
  w.down.clear();
  w.refuses.clear();
  await w.go(60);
  expect(w.got).toContain('e2@a:y');
});

test('two sinks that have exchanged their names have exchanged their notes', () => {
  const R0 = [route('t.', ['a', 'x'], ['b', 'y'])];
  const record: RouteRecord = {
    eras: [
      { after: 0, tables: [R0] },
      { after: 10, tables: [R0] },
    ],
    successors: [
      { upTo: 10, from: 'a', to: 't' },
      { upTo: 10, from: 'b', to: 'a' },
      { upTo: 10, from: 't', to: 'b' },
    ],
    left: [],
    forgotten: false,
  };
  const before = new AcceptedRoutes({
    eras: [{ after: 0, tables: [R0] }],
    successors: [],
    left: [],
    forgotten: false,
  });
  const now = new AcceptedRoutes(record);
  const note = JSON.stringify([{ upTo: 10, routes: before.name, lanes: [['x', 4, '']] }]);
  const recall = new SettledAhead('b', { note, died: [] }, () => now);
  const event = { seq: 5, type: 't.1', handling: {} };
  const own = now.targetsOf(event).filter((t) => t.sink === 'b');
  expect(recall.open(event, own).map((t) => t.destination)).toEqual(['y']);
});

test('200,000 dead letters ahead of a cursor are no reason not to start', async () => {
  const died: [string, number][] = Array.from({ length: 200_000 }, (_, i) => ['x', i + 2]);
  const recall = await settledAheadOf('a', {
    journal: { ahead: () => Promise.resolve({ note: null, died }) },
  });
  expect(recall?.last).toBe(200_001);
});

test('a target is named otherwise, and then the sink, while both are down', async () => {
  const w = new World();
  await w.start([route('t.', ['a', 'x'])], ['a']);
  w.down.add('a:x').add('a:y');
  await w.accept('e1', 't.1');
  await w.reload([route('t.', ['a', 'y'])], ['a']);
  await w.accept('e2', 't.1');
  // As LiveSinks does it for `continues`.
  await w.dispatcher.remove('a', new AbortController().signal);
  w.accepted = new AcceptedRoutes(await w.journal.succeed('a', 'b'));
  await w.dispatcher.add('b', w.sink('b'));
  w.accepted = new AcceptedRoutes(await w.journal.acceptUnder([route('t.', ['b', 'y'])]));
  w.dispatcher.begin();
  await w.go(60);
  expect(w.got).toEqual(['e1@b:y', 'e2@b:y']);
});

test('a target is down, another is put beside it, and takes over what waits', async () => {
  const w = new World();
  await w.start([route('t.', ['a', 'x'])], ['a']);
  w.down.add('a:x');
  await w.accept('e1', 't.1');
  await w.reload([route('t.', ['a', 'x'], ['a', 'y'])], ['a']);
  await w.accept('e2', 't.1');
  await w.reload([route('t.', ['a', 'y'])], ['a']);
  await w.go(60);
  expect(w.got).toContain('e1@a:y');
});

test('the same with routes that are kept for what they redact, though nothing came by them', async () => {
  const w = new World();
  await w.start([route('t.', ['a', 'x'])], ['a']);
  w.down.add('a:x').add('a:y');
  await w.accept('e1', 't.1');
  await w.reload([redacted('a')], ['a']);
  await w.dispatcher.remove('a', new AbortController().signal);
  w.accepted = new AcceptedRoutes(await w.journal.succeed('a', 'b'));
  await w.dispatcher.add('b', w.sink('b'));
  w.accepted = new AcceptedRoutes(await w.journal.acceptUnder([redacted('b')]));
  w.dispatcher.begin();
  await w.go(60);
  expect((await w.journal.listDeadLetters({})).map((l) => l.reason)).toEqual([]);
  expect(w.got).toEqual(['e1@b:y']);
});
