import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RowLines } from '../../src/tables/shape/row-lines.ts';
import { Shaper } from '../../src/tables/shape/shape.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { exported, archived } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { eventOf, exportOf, loaded } from './support.ts';

const MEAL = { id: 'meal-1', data: { Tea: {}, Cake: {} } };

test('a row made of an event says which one, and rows inside it do too', async () => {
  const event = eventOf(1, 'daily.data.meal.created', MEAL);
  const { meals = [], meal_items: items = [] } = (await exportOf([event], 'meals')).all;
  const received = new Date(event.receivedAt).toISOString();
  const envelope = {
    _event_id: event.id,
    _event_type: 'daily.data.meal.created',
    _received_at: received,
    _loaded_at: received,
    team_id: 'team-1',
    user_id: 'user-1',
    client_user_id: event.clientUser,
  };
  expect(meals).toEqual([expect.objectContaining({ id: 'meal-1', ...envelope })]);
  expect(items.map(({ name }) => name)).toEqual(['Tea', 'Cake']);
  for (const item of items) expect(item).toMatchObject({ meal_id: 'meal-1', ...envelope });
  const { events = [] } = (await exportOf([event], 'events')).all;
  expect(events).toEqual([expect.objectContaining({ id: event.id, ...envelope })]);
});

test('a user that the document names counts, and an event without a user leaves the column out', async () => {
  const { all } = await exportOf(
    [
      eventOf(1, 'daily.data.meal.created', { ...MEAL, user_id: 'of the document' }),
      eventOf(2, 'daily.data.meal.created', { ...MEAL, id: 'meal-2' }, null),
    ],
    'meals',
  );
  expect(all['meals']?.map(({ user_id: user }) => user)).toEqual(['of the document', undefined]);
});

test('whatever an envelope holds comes through as text, and a time that is none is left out', () => {
  const lines = new RowLines(TABLES.get('meals')!.definition);
  const shaper = new Shaper(TABLES.get('meals')!, {
    tables: ['meals'],
    targets: new Map([['meals', lines]]),
    onReject: ({ reason }) => expect.fail(reason),
  });
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.option(fc.string({ unit: 'binary' })), (type, user) => {
      for (const received_at of [
        '2026-11-21T03:15:02.123Z',
        'noon',
        'noon',
        '2026-11-21T03:15:02.1234567Z',
      ]) {
        shaper.about({
          event_id: 'a',
          event_type: type,
          received_at,
          team_id: null,
          user_id: user,
          client_user_id: type,
        });
        shaper.shape(Buffer.from('{"id":"meal-1"}'));
        const row: unknown = JSON.parse(lines.view().toString());
        lines.clear();
        const cut = received_at.replace('67Z', '6Z');
        const time = received_at === 'noon' ? {} : { _received_at: cut, _loaded_at: cut };
        const user_id = user === null ? {} : { user_id: shown(user) };
        const event = { _event_id: 'a', _event_type: shown(type), client_user_id: shown(type), ...user_id };
        expect(row).toEqual({ id: 'meal-1', ...event, ...time });
      }
    }),
  );
});

/** What a warehouse takes of a text. */
function shown(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

test('the newest row is that of the document’s own time, then of the event received last', async () => {
  const type = 'daily.data.meal.updated';
  const newer = { ...MEAL, updated_at: '2026-02-02T00:00:00Z', name: 'newer' };
  const events = [
    eventOf(1, type, newer),
    eventOf(2, type, { ...newer, updated_at: '2026-02-01T00:00:00Z', name: 'late' }),
    eventOf(3, type, { ...newer, name: 'last', data: { Tea: {} } }),
    eventOf(4, type, { id: 'meal-2', name: 'first' }),
    eventOf(5, type, { id: 'meal-2', name: 'second', data: { Bread: {} } }),
  ];
  const sql = await loaded(events, 'meals');
  expect(await sql('SELECT id, name FROM meals_latest ORDER BY id')).toEqual([
    ['meal-1', 'last'],
    ['meal-2', 'second'],
  ]);
  expect(await sql('SELECT meal_id, name FROM meal_items_latest ORDER BY 1, 2')).toEqual([
    ['meal-1', 'Tea'],
    ['meal-2', 'Bread'],
  ]);
});

test('a time finer than microseconds fills its column, cut off and never rounded, and counts as the newest', async () => {
  const type = 'daily.data.meal.updated';
  const events = ['00:00:00.9Z', '01:00:00.999999999+01:00'].map((time, n) =>
    eventOf(n + 1, type, { ...MEAL, name: `${n}`, updated_at: `2026-02-02T${time}` }),
  );
  const { all, messages } = await exportOf(events, 'meals');
  expect(all['meals']?.map(({ updated_at: at, extra }) => [at, extra])).toEqual([
    ['2026-02-02T00:00:00.9Z', undefined],
    ['2026-02-02T01:00:00.999999+01:00', undefined],
  ]);
  expect(messages).toEqual([]);
  const sql = await loaded(events, 'meals');
  expect(await sql('SELECT name, updated_at::VARCHAR FROM meals_latest')).toEqual([
    ['1', '2026-02-02 00:00:00.999999+00'],
  ]);
});

test('an event without a table, or of another shape than its table, is counted and is no reject', async () => {
  const events = [
    eventOf(1, 'something.not.known', { a: 1 }),
    eventOf(2, 'daily.data.meal.created', 'a text'),
    eventOf(3, 'daily.data.meal.created', MEAL),
  ];
  const path = await archived(events);
  const all = await exported([path], await temporaryFolder());
  expect(all).toMatchObject({
    rejects: 0,
    rows: { events: 3 },
    without_table: { 'something.not.known': 1 },
  });
  const meals = await exported([path], await temporaryFolder(), { table: 'meals' });
  expect(meals).toMatchObject({
    rejects: 0,
    rows: { meals: 1 },
    without_table: { 'daily.data.meal.created': 1 },
  });
});
