import { expect, test } from 'vitest';
import { typeWithoutData } from '../../../src/core/data-names.ts';
import { Cell } from '../../../src/lib/live.ts';
import { Distribution } from '../../../src/observe/metrics/meter.ts';
import { History, type Totals } from '../../../src/observe/metrics/history.ts';
import { Meter } from '../../../src/observe/metrics/meter.ts';
import { Tally } from '../../../src/lib/tally.ts';
import { MADE_UP_TEAM, madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { ManualClock } from '../../deliver/support.ts';
import { makeEvent } from '../../support/events.ts';

test('a distribution counts each value once, and those above its last bound in the sum', () => {
  const distribution = new Distribution([1, 10]);
  for (const value of [0, 1, 1.1, 10, 11]) distribution.observe(value);
  expect([...distribution.counts]).toEqual([2, 2]);
  expect([distribution.count, distribution.sum]).toEqual([5, 23.1]);
});

test('a tally has room for so many names, and loses no count', () => {
  const tally = new Tally(2);
  for (const name of ['a', 'b', 'c', 'a', 'd', 'x'.repeat(500)]) tally.add(name);
  expect([...tally]).toEqual([
    ['a', 2],
    ['b', 1],
    ['(other)', 3],
  ]);
});

test('recent events: the newest first, only what was not seen yet, and no more than a ring holds', () => {
  const meter = new Meter({ clock: new ManualClock(), plan: routed(() => null) });
  for (let seq = 1; seq <= 250; seq += 1)
    meter.stored(makeEvent({ id: `msg_${seq}` }), { status: 'accepted', seq });
  expect(meter.recent.after(247).map(({ id, seq }) => [id, seq])).toEqual([
    ['msg_250', 250],
    ['msg_249', 249],
    ['msg_248', 248],
  ]);
  expect(meter.recent.after(0).length).toBe(100);
  expect(meter.recent.after(250)).toEqual([]);
  // From a page that has seen another process.
  expect(meter.recent.after(9999)).toEqual([]);
  expect(Object.keys(meter.recent.after(249)[0] ?? {})).not.toContain('body');
});

test('recent events of an erased user are forgotten, and those that may be of one; the numbers continue', () => {
  const meter = new Meter({ clock: new ManualClock(), plan: routed(() => null) });
  for (const [index, user] of ['made-up-1', 'made-up-2', null].entries())
    meter.stored(makeEvent({ id: `msg_${index}`, user }), { status: 'accepted', seq: index + 1 });
  meter.storedInvalid(makeEvent({ id: 'msg_3', user: 'no id' }), [], { status: 'accepted', seq: 0 });
  expect(meter.recent.forgotten).toBe(0);
  meter.recent.forget(({ user }) => user === 'made-up-1');
  expect(meter.recent.after(0).map(({ id, n }) => [id, n])).toEqual([['msg_1', 2]]);
  expect(meter.recent.forgotten).toBe(1);
  meter.stored(makeEvent({ id: 'msg_4', user: 'made-up-2' }), { status: 'accepted', seq: 4 });
  expect(meter.recent.after(4).map(({ id, n }) => [id, n])).toEqual([['msg_4', 5]]);
});

test('a type that says whose it is, or of which day, is counted without that', () => {
  const meter = new Meter({ clock: new ManualClock(), plan: routed(() => null) });
  const user = 'made-up-77';
  for (const [seq, type] of [
    `raw.${user}.created`,
    'raw.00000000-0000-4000-8000-00000000abcd.created',
    'raw.2026-11-23.created',
    'raw.01JD8Z2M5W0S5Y1Q2R3T4V5W6X.created',
    'labtest.order.updated',
  ].entries())
    meter.stored(makeEvent({ id: `msg_${seq}`, type, user }), { status: 'accepted', seq: seq + 1 });
  expect([...meter.types]).toEqual([
    ['raw.*.created', 4],
    ['labtest.order.updated', 1],
  ]);
});

test('types of made-up events, which are those that the service documents, are counted as they are', () => {
  for (let n = 0; n < 200; n += 1) {
    const { event_type: type } = JSON.parse(madeUpEvent(n).body.toString()) as { event_type: string };
    expect(typeWithoutData(type, { team: MADE_UP_TEAM, user: 'made-up', clientUser: null })).toBe(type);
  }
});

test('events of every outcome and source add up', () => {
  const meter = new Meter({
    clock: new ManualClock(),
    plan: routed((type) => (type.startsWith('daily.') ? 0 : null)),
  });
  const event = makeEvent({ source: 'hub' });
  meter.stored(event, { status: 'accepted', seq: 1 });
  meter.stored(event, { status: 'duplicate' });
  meter.stored(event, { status: 'erased' });
  meter.storedInvalid(event, [{ code: 'team_missing', detail: '' }], { status: 'accepted', seq: -1 });
  meter.storedInvalid(event, [{ code: 'team_missing', detail: '' }], { status: 'duplicate' });
  expect([...(meter.events.get('hub') ?? [])]).toEqual([
    ['accepted', 1],
    ['duplicate', 2],
    ['erased', 1],
    ['quarantined', 1],
  ]);
  expect(meter).toMatchObject({ accepted: 1, duplicates: 2, erased: 1, quarantined: 1, refused: 0 });
  expect([...meter.routes]).toEqual([['0', 1]]);
  // A replayed event says nothing of how quick its sink is.
  const replayed = { ...event, seq: 1, handling: { replayId: 'made-up' } };
  meter.delivered('archive', [{ event: replayed, destination: null }]);
  expect(meter.delivering.size).toBe(0);
});

const totals = (accepted: number, delivered: number, backlog = 0): Totals => ({
  accepted,
  refused: 0,
  quarantined: 0,
  sinks: [{ sink: 'archive', delivered, backlog }],
});

test('the history is in events a second, whatever the clock and the sinks do', () => {
  const history = new History(10_000, totals(100, 50));
  history.sample(12_000, totals(140, 60, 7));
  const zero = { refused: 0, quarantined: 0 };
  const first = { ...zero, at: 12_000, accepted: 20, sinks: { archive: { delivered: 5, backlog: 7 } } };
  expect(history.after(0)).toEqual([first]);
  // Set back: nothing can be said of that second, nor of what would be to come.
  history.sample(5_000, totals(150, 60));
  expect(history.after(0)).toEqual([]);
  // The sink was exchanged: it counts from 0.
  history.sample(6_000, totals(151, 3));
  const next = { ...zero, at: 6_000, accepted: 1, sinks: { archive: { delivered: 3, backlog: 0 } } };
  expect(history.after(0)).toEqual([next]);
  for (let n = 1; n <= 500; n += 1) history.sample(20_000 + n * 1000, totals(151, 3));
  expect(history.after(0).length).toBe(300);
  expect(history.after(519_000)).toMatchObject([{ at: 520_000 }]);
});

function routed(index: (type: string) => number | null): ConstructorParameters<typeof Meter>[0]['plan'] {
  return new Cell({ table: { routesFor: (type: string) => ({ index: index(type) }) } });
}
