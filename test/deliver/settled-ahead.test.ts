import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NO_ROUTES, type RouteRecord } from '../../src/core/route-record.ts';
import type { Route } from '../../src/core/route.ts';
import type { Item } from '../../src/deliver/item.ts';
import { SettledAhead } from '../../src/deliver/settled-ahead.ts';
import { AcceptedRoutes } from '../../src/deliver/routes/accepted.ts';
import { makeEvent } from '../support/events.ts';
import { windowOf } from './running.ts';

const NOTHING = { note: null, died: [] };

/** Each type to its destinations. */
function routes(to: Readonly<Record<string, readonly string[]>>): readonly Route[] {
  return Object.entries(to).map(([match, all]) => ({
    match: [match],
    to: all.map((destination) => ({ sink: 'a', destination })),
  }));
}

const record = (...tables: (readonly Route[])[]): RouteRecord => ({
  ...NO_ROUTES,
  eras: tables.map((table, at) => ({ after: at * 100, tables: [table] })),
});

const eventOf = (seq: number, type: string) => ({ ...makeEvent({ id: `e${seq}`, type }), seq, handling: {} });

/** A feed's window, and what it has handed out. */
function notedWindow(accepted: () => AcceptedRoutes, recall: SettledAhead | null = null, cursor = 0) {
  const { window, pending } = windowOf({
    maxPending: 1e6,
    maxPendingBytes: 1e9,
    targetsOf: (event) => accepted().targetsOf(event),
    routes: accepted,
  });
  window.begin(cursor, recall);
  const open = new Map<string, Item>();
  const admit = (seq: number, type: string): void => {
    window.admit(eventOf(seq, type));
    const items = pending.take() ?? [];
    for (const item of items) open.set(`${item.seq}@${item.destination}`, item);
    pending.release(items);
  };
  return { window, open, admit };
}

const FIRST = routes({ one: ['x'], both: ['x', 'y'], other: ['y'] });

const atFirst = (): AcceptedRoutes => new AcceptedRoutes(record(FIRST));

test('what a window notes says of each delivery whether it is settled, over notes of notes', () => {
  const types = fc.array(fc.constantFrom('one', 'both', 'other', 'none'), { minLength: 1, maxLength: 40 });
  const lives = fc.array(fc.record({ upTo: fc.nat(40), settled: fc.array(fc.nat(1000)) }), { maxLength: 4 });
  fc.assert(
    fc.property(types, lives, (all, each) => {
      const settled = new Set<string>();
      let note: string | null = null;
      let cursor = 0;
      for (const life of [...each, { upTo: 40, settled: [] }]) {
        const recall = note === null ? null : new SettledAhead('a', { note, died: [] }, atFirst);
        const { window, open, admit } = notedWindow(atFirst, recall, cursor);
        for (const [at, type] of all.slice(0, life.upTo).entries()) {
          if (at < cursor) continue;
          admit(at + 1, type);
          const due = FIRST.find(({ match }) => match.includes(type))?.to ?? [];
          const names = due.map(({ destination }) => `${at + 1}@${destination}`);
          expect(names.filter((name) => open.has(name))).toEqual(names.filter((name) => !settled.has(name)));
        }
        for (const pick of life.settled) {
          const [name, item] = [...open][pick % Math.max(1, open.size)] ?? [];
          if (name === undefined || item === undefined) continue;
          window.settle(item);
          open.delete(name);
          settled.add(name);
        }
        note = window.note();
        ({ cursor } = window);
      }
    }),
  );
});

test('where routes have changed, what waits goes to the place of now, and what had been sent goes nowhere', () => {
  let accepted = new AcceptedRoutes(record(FIRST));
  const { window, open, admit } = notedWindow(() => accepted);
  for (const [seq, type] of [
    [1, 'one'],
    [2, 'one'],
    [3, 'both'],
    [4, 'both'],
    [5, 'other'],
  ] as const)
    admit(seq, type);
  for (const name of ['2@x', '3@y', '5@y']) window.settle(open.get(name) as Item);
  const note = window.note();
  accepted = new AcceptedRoutes(record(FIRST, routes({ one: ['z'], both: ['y', 'z'], other: ['x'] })));
  const recall = new SettledAhead('a', { note, died: [['x', 4]] }, () => accepted);
  const again = (seq: number, type: string): (string | null)[] => {
    const event = eventOf(seq, type);
    return recall.open(event, accepted.targetsOf(event)).map(({ destination }) => destination);
  };
  expect(again(1, 'one')).toEqual(['z']);
  expect(again(2, 'one')).toEqual([]);
  // `y` has it; what waited for `x` is for `z` now.
  expect(again(3, 'both')).toEqual(['z']);
  // A dead letter at `x`; it waited for `y`, and goes where an event that waits goes now.
  expect(again(4, 'both')).toEqual(['y', 'z']);
  expect(again(5, 'other')).toEqual([]);
  expect(again(6, 'one')).toEqual(['z']);
});

test('when the earlier routes are unknown, an event that was open somewhere is sent again, except dead letters', () => {
  const then = new AcceptedRoutes(record(FIRST));
  const { window, open, admit } = notedWindow(() => then);
  for (const seq of [1, 2, 3, 4]) admit(seq, 'both');
  window.settle(open.get('2@x') as Item);
  for (const name of ['4@x', '4@y', '3@x', '3@y']) window.settle(open.get(name) as Item);
  const now = new AcceptedRoutes(record(routes({ both: ['y', 'x'] })));
  const recall = new SettledAhead('a', { note: window.note(), died: [['x', 1]] }, () => now);
  const again = (seq: number): (string | null)[] => {
    const event = eventOf(seq, 'both');
    return recall.open(event, now.targetsOf(event)).map(({ destination }) => destination);
  };
  expect([again(1), again(2), again(3), again(4)]).toEqual([['y'], ['y', 'x'], [], []]);
});

test('a feed that continues under other routes notes the routes that each event was loaded under', () => {
  let accepted = new AcceptedRoutes(record(FIRST));
  const { window, admit } = notedWindow(() => accepted);
  admit(1, 'one');
  accepted = new AcceptedRoutes(record(FIRST, routes({ one: ['z'] })));
  admit(101, 'one');
  const recall = new SettledAhead('a', { ...NOTHING, note: window.note() }, () => accepted);
  for (const seq of [1, 101]) {
    const event = eventOf(seq, 'one');
    expect(recall.open(event, accepted.targetsOf(event)).map(({ destination }) => destination)).toEqual([
      'z',
    ]);
  }
});
