import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import { reportOf } from '../../src/observe/schema/report.ts';
import { describeDrift } from '../../src/tables/learned/drift.ts';
import { eventOf, Learner } from '../observe/schema/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { Place, saying } from '../support/place.ts';

const OLD = { receivedAt: Date.UTC(2026, 0, 1) };
const NEW = { receivedAt: Date.UTC(2026, 1, 1) };

/** What was seen of these events, as `millrace schema --json` writes it. */
async function reportOn(...events: readonly Event[]): Promise<string> {
  const learner = new Learner();
  learner.see(...events);
  const file = join(await temporaryFolder(), 'seen.json');
  writeFileSync(file, JSON.stringify(reportOf(learner.memory, true)));
  return file;
}

const schemaDiff = (from: string, ...args: string[]) => millrace(['schema', 'diff', '--from', from, ...args]);

/** Exit code, and what is new, gone and of another kind. */
const diff = async (from: string, against: string) => {
  const run = await schemaDiff(from, '--against', against, '--json');
  const { drift } = JSON.parse(run.stdout) as {
    drift: Record<'new' | 'gone' | 'kinds', { path: string }[]>[];
  };
  const paths = (list: 'new' | 'gone' | 'kinds') => drift[0]?.[list].map(({ path }) => path) ?? [];
  return [run.code, paths('new'), paths('gone'), paths('kinds')];
};

const meal = (data: object) =>
  eventOf(
    { event_type: 'daily.data.meal.created', team_id: 't', user_id: 'u', client_user_id: null, data },
    { type: 'daily.data.meal.created' },
  );

test('since a day: what is new, what has gone, what has become something else', async () => {
  const from = await reportOn(
    eventOf({ a: 1, b: { c: 1, d: 1 }, n: null }, OLD),
    eventOf({}, { ...OLD, type: 'no.more' }),
    eventOf({ a: 'one', b: { d: 1, e: [1] }, n: 1 }, NEW),
    eventOf({}, { ...NEW, type: 'one.more' }),
  );
  const run = await schemaDiff(from, '--since', '2026-01-15');
  expect(run).toMatchObject({ code: 4, stderr: '' });
  expect(run.stdout.trimEnd().split('\n')).toEqual([
    '  made.up.created',
    '+   /b/e  array  first seen 2026-02-01T00:00:00Z',
    '+   /b/e/*  integer  first seen 2026-02-01T00:00:00Z',
    '-   /b/c  integer  last seen 2026-01-01T00:00:00Z',
    '~   /a  integer -> text, integer  since 2026-02-01T00:00:00Z',
    '- no.more  last seen 2026-01-01T00:00:00Z',
    '+ one.more  first seen 2026-02-01T00:00:00Z',
  ]);
  const later = await schemaDiff(from, '--since', '2026-01-15', 'no.such', '--json');
  expect(later).toMatchObject({ code: 0, stdout: '{"drift":[]}\n' });
});

test('a line feed in the name of a field stays on the line of the field', async () => {
  const name = 'a\ngone';
  const from = await reportOn(eventOf({}, OLD), eventOf({ renamed: 1 }, NEW));
  writeFileSync(
    from,
    readFileSync(from, 'utf8').replaceAll('/renamed', JSON.stringify(`/${name}`).slice(1, -1)),
  );
  const run = await schemaDiff(from, '--since', '2026-01-15');
  expect(run.stdout.trimEnd().split('\n')).toEqual([
    '  made.up.created',
    String.raw`+   /a\u000agone  integer  first seen 2026-02-01T00:00:00Z`,
  ]);
  const drift = { table: 'meals', rows: 1, new: [{ path: name, count: 1 }], changed: [], gone: [], more: 0 };
  expect(describeDrift(drift)).toBe(
    String.raw`drift in meals, 1 rows: new fields, in extra: a\u000agone (1)`,
  );
});

test('against a file: the other way round what is new has gone', async () => {
  const before = await reportOn(eventOf({ a: 1, gone: 1 }, OLD));
  const now = await reportOn(eventOf({ a: true, added: 1 }, NEW));
  expect(await diff(now, before)).toEqual([4, ['/added'], ['/gone'], ['/a']]);
  expect(await diff(before, now)).toEqual([4, ['/gone'], ['/added'], ['/a']]);
  expect(await diff(now, now)).toEqual([0, [], [], []]);
});

test('against what the service documents: a field that it does not name, and a number where it has a text', async () => {
  const item = { energy: { unit: 'kcal', value: 1 }, macros: { fats: { total: 1.5 } } };
  const right = await reportOn(meal({ id: 'x', name: 'y', data: { apple: item } }));
  // What is documented need not come.
  expect(await schemaDiff(right, '--against', 'service-spec')).toMatchObject({
    code: 0,
    stdout: expect.not.stringMatching(/^[+~]/m),
  });
  const wrong = await reportOn(meal({ id: 7, glycaemic: 1, data: { apple: { ...item, colour: 'red' } } }));
  const { code, stdout } = await schemaDiff(wrong, '--against', 'service-spec');
  expect(code).toBe(4);
  expect(stdout.split('\n').filter((line) => /^[+~]/.test(line))).toEqual([
    '+   /data/glycaemic  integer',
    '+   /data/data/*/colour  text',
    expect.stringMatching(/^~   \/data\/id  text -> integer/),
  ]);
});

test.each([
  [['diff'], /say --since DATE, or --against/],
  [['diff', '--since', 'yesterday'], /--since yesterday: must be a day/],
  [['diff', '--against', 'no-such.json'], /no-such\.json/],
  [['meals'], /--dialect is required/],
  [['--load'], /--dialect is required/],
  [['no.such', '--from', 'package.json'], /is not what `millrace schema --json` writes/],
])('schema %j says what is wrong', async (args, message) => {
  expect(await millrace(['schema', ...args])).toMatchObject(saying(2, message));
});

test.each([
  [{ schema: { alertTo: 'nowhere' } }, /schema\.alertTo: nowhere names no configured sink/],
  [
    { schema: { enabled: true }, acknowledge: 'delivered' },
    /schema\.enabled: needs a journal on this machine/,
  ],
  [{ schema: { alertTo: 'archive' }, acknowledge: 'delivered' }, /schema\.alertTo: needs a journal/],
  [
    { schema: true, journal: { type: 'kafka', brokers: ['127.0.0.1:1'] } },
    /schema\.enabled: needs a journal on this machine/,
  ],
  [{ schema: { alertsTo: 'archive' } }, /schema\.alertsTo: .*did you mean .*alertTo/],
])('the config %j is refused by the name of the key', async (changes, message) => {
  expect(await (await Place.make(changes)).run('check')).toMatchObject(saying(2, message));
});

test.each([{ schema: false }, { schema: { enabled: false } }, { schema: false, acknowledge: 'delivered' }])(
  'the config %j is taken',
  async (changes) => {
    expect((await (await Place.make(changes)).run('check')).code).toBe(0);
  },
);
