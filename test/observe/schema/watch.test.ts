import { expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.ts';
import type { Event } from '../../../src/core/event.ts';
import type { SinkLog } from '../../../src/core/sink.ts';
import { GuardedIngest } from '../../../src/core/ingest.ts';
import { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { type SchemaSettings, SchemaWatch } from '../../../src/observe/schema/watch.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { until } from '../../support/until.ts';
import { eventOf, TYPE } from './support.ts';

const SILENT = { stored: () => undefined, storedInvalid: () => undefined };

interface Line {
  readonly level: string;
  readonly message: string;
  readonly type?: string;
  readonly fields?: readonly string[] | number;
  readonly kinds?: readonly string[];
}

interface Setting {
  readonly settings?: SchemaSettings;
  readonly clock?: Clock;
}

/** A journal, and the memory on it: as after a start. */
async function start(path: string, { settings = { enabled: true, alertTo: null }, clock }: Setting = {}) {
  const journal = await SqliteJournal.open({
    path,
    retention: 1e9,
    dedupWindow: 1e9,
    maxBytes: 1e9,
    create: true,
    clock: systemClock,
    onFailure: () => undefined,
  });
  onTestFinished(() => journal.close());
  const lines: Line[] = [];
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [
      level,
      (detail: object, message: string) => lines.push({ level, message, ...detail }),
    ]),
  ) as unknown as SinkLog;
  const live = { settings };
  const watch: SchemaWatch = await SchemaWatch.open(SILENT, {
    clock: clock ?? systemClock,
    log,
    store: journal,
    ingest: () => ingest,
    settings: () => live.settings,
    envelope: () => ({ type: 'event_type', team: 'team_id' }),
  });
  const ingest = new GuardedIngest(journal, () => false, watch);
  const accept = (...events: Event[]) => Promise.all(events.map((event) => ingest.accept(event)));
  const news = () => lines.filter(({ type }) => type !== undefined);
  const stop = async () => {
    await watch.stop();
    await journal.close();
  };
  return { journal, watch, accept, lines, news, stop, live };
}

const field = (path: string) => (line: Line) => Array.isArray(line.fields) && line.fields.includes(path);

test('what is new is logged once: not when it comes twice, nor after a restart', async () => {
  const path = await temporaryFolder();
  const one = await start(path);
  await one.accept(eventOf({ a: 1 }), eventOf({ a: 2 }));
  await until('the type', () => one.news().length === 1);
  await one.accept(eventOf({ a: 1, b: 1 }), eventOf({ a: 1, b: 2 }));
  await until('the field', () => one.news().some(field('/b')));
  await one.stop();
  expect(one.news()).toEqual([
    { level: 'info', message: 'first event of this type', type: TYPE, fields: 1 },
    { level: 'info', message: 'events of this type have more fields', type: TYPE, fields: ['/b'] },
  ]);
  const two = await start(path);
  await two.accept(eventOf({ a: 1, b: 1 }), eventOf({ a: 1, c: 1 }));
  await until('the next field', () => two.news().some(field('/c')));
  await two.stop();
  expect(two.news()).toHaveLength(1);
  expect(two.watch.report().types[0]).toMatchObject({ events: 6, looked_at: 6 });
});

test('a new field of a type that is well known is a warning, and so is another kind of value', async () => {
  // By this clock looking at events takes no time: on a busy machine too all of them are looked at.
  const clock = { ...systemClock, monotonic: () => 0 };
  const { accept, news, stop } = await start(await temporaryFolder(), { clock });
  await accept(...Array.from({ length: 25 }, () => eventOf({ a: 1 })));
  await until('the type', () => news().length === 1);
  await accept(eventOf({ a: 'text', b: 1 }));
  await until('the change', () => news().length === 2);
  expect(news()[1]).toEqual({
    level: 'warn',
    message: 'events of this type have changed',
    type: TYPE,
    fields: ['/b'],
    kinds: ['/a text'],
  });
  await stop();
});

test('what was accepted and not looked at before a crash is looked at after it; what was logged may be logged again', async () => {
  const path = await temporaryFolder();
  // As after kill -9: nothing of the memory is logged or kept, and the events are durable.
  const first = await start(path);
  first.live.settings = { enabled: false, alertTo: null };
  await first.accept(eventOf({ a: 1 }));
  await first.journal.close();
  const one = await start(path);
  await until('the type', () => one.news().length === 1);
  await until('it is kept', async () => (await one.journal.checkpoints.load('schema.seq')) === '1');
  one.live.settings = { enabled: false, alertTo: null };
  await one.accept(eventOf({ a: 1, b: 1 }));
  await one.journal.close();
  const two = await start(path);
  await until('the field', () => two.news().some(field('/b')));
  await two.stop();
  const three = await start(path);
  await three.accept(eventOf({ a: 1, b: 1 }));
  await three.stop();
  expect(three.news()).toEqual([]);
});

test('a damaged note of the last event is logged by name, and made again as a missing one is', async () => {
  const path = await temporaryFolder();
  const one = await start(path);
  await one.accept(eventOf({ a: 1 }));
  await one.stop();
  for (const damaged of ['1x', '', '-1', 'NaN']) {
    const two = await start(path);
    await two.journal.checkpoints.save('schema.seq', damaged);
    await two.stop();
    const three = await start(path);
    expect(three.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', checkpoint: 'schema.seq', lastSeq: 1 }),
    );
    expect(await three.journal.checkpoints.load('schema.seq')).toBe('1');
    await three.stop();
  }
});

test('off it remembers nothing new, and on again it continues with what it knew', async () => {
  const { accept, news, stop, live, watch } = await start(await temporaryFolder());
  await accept(eventOf({ a: 1 }));
  await until('the type', () => news().length === 1);
  live.settings = { enabled: false, alertTo: null };
  await accept(eventOf({ b: 1 }), eventOf({ c: 1 }, { type: 'another' }));
  expect(watch.report()).toMatchObject({ enabled: false, types: [{ events: 1 }] });
  live.settings = { enabled: true, alertTo: null };
  await accept(eventOf({ a: 1, d: 1 }));
  await until('the field', () => news().some(field('/d')));
  await stop();
  expect(watch.report().types.map(({ type }) => type)).toEqual([TYPE]);
});

test('what is new is sent to a sink as an event, which is none of those that are remembered', async () => {
  const settings = { enabled: true, alertTo: 'alerts:place' };
  const { accept, stop, journal, watch } = await start(await temporaryFolder(), { settings });
  await accept(eventOf({ a: 1 }));
  const sent = await until('the event', async () => {
    const events = await journal.read(1, { count: 10, bytes: 1e6 });
    return events[0];
  });
  expect(sent).toMatchObject({
    source: 'schema',
    type: 'millrace.schema.changed',
    handling: { only: ['alerts:place'] },
  });
  expect(JSON.parse(sent.body.toString())).toEqual({
    event_type: 'millrace.schema.changed',
    team_id: null,
    data: {
      event_type: TYPE,
      is_new_type: true,
      known_fields: 1,
      new_fields: [],
      more_fields: 0,
      new_kinds: [],
      detected_at: '2026-11-21T12:00:00.000Z',
    },
  });
  await stop();
  expect(watch.report().types).toHaveLength(1);
});

test('in a flood some of each type are looked at, and the rest are counted', async () => {
  // Each look at the clock takes it a millisecond.
  class Slow extends ManualClock {
    override monotonic(): number {
      this.advance(1);
      return super.monotonic();
    }
  }
  const { watch, stop } = await start(await temporaryFolder(), { clock: new Slow() });
  const see = (count: number, type: string) => {
    for (let n = 0; n < count; n += 1)
      watch.stored(eventOf({ a: 1 }, { type }), { status: 'accepted', seq: n + 1 });
  };
  see(200, 'frequent');
  see(1, 'rare');
  const { looked, passed } = watch.figures;
  expect(looked + passed).toBe(201);
  expect(looked).toBeGreaterThanOrEqual(9);
  expect(looked).toBeLessThan(50);
  expect(watch.report().types.map(({ type, events }) => [type, events])).toEqual([
    ['frequent', 200],
    ['rare', 1],
  ]);
  expect(watch.report().types[1]?.looked_at).toBe(1);
  await stop();
});

test('a memory that cannot be read is logged, and starts empty', async () => {
  const path = await temporaryFolder();
  const one = await start(path);
  await one.journal.checkpoints.save('schema', '{"version":1,"types":[{"type":');
  await one.journal.close();
  const two = await start(path);
  await two.accept(eventOf({ a: 1 }));
  await two.stop();
  expect(two.lines[0]).toMatchObject({
    level: 'warn',
    message: 'the schema memory cannot be read; it starts empty',
  });
  expect(two.watch.report().types).toHaveLength(1);
});
