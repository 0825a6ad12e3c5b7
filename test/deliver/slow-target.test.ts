import { expect, test } from 'vitest';
import { DELIVERED, type SendResult } from '../../src/core/sink.ts';
import { NO_ROUTES } from '../../src/core/route-record.ts';
import { AcceptedRoutes } from '../../src/deliver/routes/accepted.ts';
import { makeEvent } from '../support/events.ts';
import { makeDispatcher } from './running.ts';
import { ArrayJournal, byType, ManualClock, ScriptedSink, until } from './support.ts';

const DOWN: SendResult = { status: 'retry', reason: 'down' };

/** A sink with places, some of which are down, and what each has had in the order in which it came. */
async function feedOf({ bounds = {}, journal = new ArrayJournal(), places = ['x', 'y', 'z'] } = {}) {
  const down = new Set<string>();
  const got = new Map<string, string[]>(places.map((place) => [place, []]));
  const table = places.map((place) => ({ match: [place], to: [{ sink: 'a', destination: place }] }));
  const routes = new AcceptedRoutes({ ...NO_ROUTES, eras: [{ after: 0, tables: [table] }] });
  const clock = new ManualClock();
  const sink = new ScriptedSink(
    ({ event, destination }) => {
      const place = destination ?? '';
      if (down.has(place)) return DOWN;
      got.get(place)?.push(event.id);
      return DELIVERED;
    },
    { batchCount: 1, inFlight: 1000, batchBy: 'destination' },
  );
  const dispatcher = makeDispatcher({
    journal,
    clock,
    maxPending: 40,
    maxPendingBytes: 1e9,
    targetsOf: byType((type) => [{ sink: 'a', destination: type }]),
    routes: () => routes,
    ...bounds,
  });
  const put = (place: string, count: number, bytes = 10): string[] =>
    Array.from({ length: count }, () => {
      const seq = journal.lastSeq + 1;
      const id = `e${seq}`;
      journal.put(makeEvent({ id, type: place, user: `u${seq % 3}`, body: Buffer.alloc(bytes) }));
      return id;
    });
  await dispatcher.add('a', sink);
  dispatcher.begin();
  return { down, got, clock, dispatcher, put, journal, of: (place: string) => got.get(place) ?? [] };
}

const usersOf = (ids: readonly string[]): string[][] =>
  [0, 1, 2].map((user) => ids.filter((id) => Number(id.slice(1)) % 3 === user));

test('a destination that is down does not hold up others, and gets its events in order when it is up', async () => {
  const { down, of, clock, put, dispatcher } = await feedOf();
  down.add('x');
  // The memory is full of what waits for it before the first try has failed.
  const waiting = put('x', 500);
  const other = put('y', 200);
  await until(clock, () => of('y').length === other.length);
  const later = [...put('x', 100), ...put('x', 1)];
  const more = put('z', 100);
  await until(clock, () => of('z').length === more.length);
  expect(dispatcher.status()).toMatchObject([{ cursor: 0, waiting: 601 }]);
  down.clear();
  const all = [...waiting, ...later];
  await until(clock, () => of('x').length >= all.length);
  expect(usersOf(of('x'))).toEqual(usersOf(all));
  expect(usersOf(of('y'))).toEqual(usersOf(other));
  await until(clock, () => dispatcher.status()[0]?.cursor === 901);
  expect(dispatcher.status()).toMatchObject([{ pending: 0 }]);
});

test('bytes that wait for one place leave room for the others', async () => {
  const { down, of, clock, put } = await feedOf({ bounds: { maxPending: 5000, maxPendingBytes: 1000 } });
  down.add('x');
  const waiting = put('x', 30, 400);
  const other = put('y', 50, 300);
  await until(clock, () => of('y').length === other.length);
  down.clear();
  await until(clock, () => of('x').length === waiting.length);
  expect(usersOf(of('x'))).toEqual(usersOf(waiting));
});

test('of many places that are down the last one that works has room', async () => {
  const places = Array.from({ length: 12 }, (_, at) => `p${at}`);
  const { down, of, clock, put } = await feedOf({ places, bounds: { maxPending: 400 } });
  for (const place of places.slice(1)) down.add(place);
  for (let round = 0; round < 20; round += 1) for (const place of places) put(place, 20);
  await until(clock, () => of('p0').length === 400);
  expect(places.slice(1).flatMap(of)).toEqual([]);
  down.clear();
  await until(clock, () => places.every((place) => of(place).length === 400));
});

test('while every place is down the journal is not read on and on', async () => {
  class Counting extends ArrayJournal {
    furthest = 0;

    override read(after: number, limits: { count: number; bytes: number }) {
      this.furthest = Math.max(this.furthest, after);
      return super.read(after, limits);
    }
  }
  const journal = new Counting();
  const { down, of, clock, put } = await feedOf({ journal, places: ['x', 'y'] });
  for (const place of ['x', 'y']) down.add(place);
  for (let round = 0; round < 100; round += 1) for (const place of ['x', 'y']) put(place, 10);
  for (let round = 0; round < 50; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.next();
  }
  expect(journal.furthest).toBeLessThan(200);
  down.clear();
  await until(clock, () => of('x').length + of('y').length === 2000);
});

test('with one place nothing is left in the journal, and all of it comes in order', async () => {
  const { of, clock, put, dispatcher, journal } = await feedOf({ places: ['x'] });
  const sent = put('x', 300);
  await until(clock, () => of('x').length === 300);
  expect(usersOf(of('x'))).toEqual(usersOf(sent));
  expect([dispatcher.status()[0]?.cursor, journal.lastSeq]).toEqual([300, 300]);
});
