import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { columnsInRow } from '../../../src/tables/shape/plan.ts';
import { TABLES } from '../../../src/tables/tables.ts';
import { archived, mealEvent } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { backfill, rowIds, sandbox } from '../../history/backfill/support.ts';
import { backfillOf, eventsOf, LOADED_AT, type MadeUpMeal, writeBackfill } from './backfills.ts';
import { inDuckDB, inPostgres, kindsOf, load, postgresServer } from './support.ts';
import { userId } from '../../privacy/erase/support.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { skipped } from '../../support/requirements.ts';

const postgres = postgresServer();

const COUNTS = `SELECT (SELECT count(*) FROM meals), (SELECT count(*) FROM meal_items),
  (SELECT count(*) FROM meals_latest), (SELECT count(*) FROM meal_items_latest)`;

const isGone = (n: number): boolean => n % 17 === 0;
const LATEST = 'SELECT id FROM meals_latest ORDER BY id';
const ITEMS = 'SELECT meal_id FROM meal_items_latest ORDER BY meal_id';

test('what a backfill has fetched is loaded', async () => {
  const [service, out] = [await sandbox({ users: 3 }), await temporaryFolder()];
  const days = ['--since', '2020-01-01', '--until', '2030-01-01'];
  expect(await backfill(service, out, '--all-users', ...days)).toMatchObject({ code: 0 });
  const database = inDuckDB(join(await temporaryFolder(), 'loaded.duckdb'));
  expect(await load(out, database)).toMatchObject({ code: 0, summary: { problems: 0, rejects: 0 } });
  expect(await database.sql(LATEST)).toEqual(rowIds(join(out, 'meals.ndjson')));
});

const [GONE, STAYS] = [userId(1), userId(2)];
const MEALS_OF_TWO = [GONE, STAYS].map((user) => ({ id: `of ${user}`, user }));
const PULLS_OF_TWO = [GONE, STAYS].map((user) => ({ user_id: user }));
const USERS = 'SELECT user_id FROM meals UNION ALL SELECT user_id FROM _millrace_pulls ORDER BY 1';

test.skipIf(postgres.lack !== null)(
  `an erasure in the schema of a sink removes the pulls of a load too${skipped(postgres.lack)}`,
  async () => {
    const [root, schema] = [await temporaryFolder(), postgres.newSchema()];
    const database = inPostgres(postgres.server(), schema);
    await load(await backfillOf(MEALS_OF_TWO, PULLS_OF_TWO), database);
    const warehouse = { type: 'postgres', connectionString: postgres.server().url, schema };
    const settings = { erasure: { path: join(root, 'erasure') }, sinks: { warehouse } };
    const args = ['erase', GONE, '--now', '--json', '--config', writeConfig(root, settings)];
    const { code, stdout, stderr } = await millrace(args);
    expect(code, stderr).toBe(0);
    expect(await database.sql(USERS)).toEqual([STAYS, STAYS]);
    const { receipts } = JSON.parse(stdout) as { receipts: { items: object[] }[] };
    expect(receipts[0]?.items).toContainEqual(
      expect.objectContaining({ item: '_millrace_pulls', removed: 1 }),
    );
  },
);

test('a file that the backfill has written and that is not there is an error with its name', async () => {
  for (const name of ['meals', 'meal_items', '_backfill', '_pulls']) {
    const file = `${name}.ndjson`;
    const reason = name.startsWith('_')
      ? 'the folder of a finished backfill has it'
      : '_backfill.ndjson names it';
    const folder = await backfillOf([{ id: 'm-1' }, { id: 'm-2' }]);
    rmSync(join(folder, file));
    const { code, stderr } = await load(folder, inDuckDB(join(await temporaryFolder(), 'loaded.duckdb')));
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${folder}/${file} is not there, and ${reason}`),
    ]);
  }
  const folder = await backfillOf([{ id: 'm-1' }]);
  writeFileSync(join(folder, '_backfill.ndjson'), '{"user_id":"user-1","status":"done"}\n{"user_id":"us');
  const { code, stderr } = await load(folder, inDuckDB(join(await temporaryFolder(), 'loaded.duckdb')));
  expect([code, stderr]).toEqual([1, expect.stringContaining('_backfill.ndjson, line 2: it is no outcome')]);
});

test('a folder that is empty now, as without its disk, takes no row away', async () => {
  const database = inDuckDB(join(await temporaryFolder(), 'loaded.duckdb'));
  const ofBackfill = await backfillOf([{ id: 'm-1' }, { id: 'm-2' }], [{ user_id: 'user-1' }]);
  const unlisted = await archived([mealEvent(3)]);
  rmSync(join(unlisted, '_manifest.jsonl'));
  const counts = 'SELECT (SELECT count(*) FROM meals), (SELECT count(*) FROM _millrace_loads)';
  expect((await load([ofBackfill, unlisted], database)).code).toBe(0);
  const before = await database.sql(counts);
  for (const folder of [ofBackfill, unlisted])
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  const { code, summary, stderr } = await load([ofBackfill, unlisted], database);
  expect([code, summary]).toMatchObject([3, { missing: 2, replaced: 0 }]);
  expect(stderr).toContain('_backfill.ndjson: missing: its rows stay');
  expect(await database.sql(counts)).toEqual(before);
});

test('a file with fewer rows than the backfill has fetched is an error, and nothing is loaded or removed', async () => {
  const database = inDuckDB(join(await temporaryFolder(), 'loaded.duckdb'));
  const folder = await backfillOf([{ id: 'm-1' }, { id: 'm-2' }], [{ user_id: 'user-1' }]);
  await load(folder, database);
  const file = join(folder, 'meals.ndjson');
  const [first = '', second = ''] = readFileSync(file, 'utf8').split('\n');
  for (const [left, rows] of [
    [`${first}\n`, 1],
    ['', 0],
  ] as const) {
    writeFileSync(file, left);
    const reason = `${file} has ${rows} rows, and 2 by _backfill.ndjson`;
    expect(await load(folder, database)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(reason) as string,
    });
    const printed = await millrace(['schema', '--dialect', 'duckdb', '--backfill', folder]);
    expect([printed.code, printed.stderr]).toEqual([1, expect.stringContaining(reason)]);
    expect(await database.sql(LATEST)).toEqual(['m-1', 'm-2']);
  }
  // The line feed of the last row alone is no row.
  writeFileSync(file, `${first}\n${second}`);
  expect((await load(folder, database)).stderr).not.toContain('rows, and');
});

describe.each(kindsOf(postgres))('a backfill loaded into $kind', ({ skip, make }) => {
  test.skipIf(skip)('is there once, however often it is loaded, and follows its files', async () => {
    const [folder, database] = [await temporaryFolder(), await make()];
    writeBackfill(folder, [{ id: 'm-1' }, { id: 'm-2' }]);
    const rows = { meals: 2, meal_items: 2 };
    expect(await load(folder, database)).toMatchObject({ code: 0, summary: { ok: true, files: 1, rows } });
    expect(await load(folder, database)).toMatchObject({
      code: 0,
      summary: { files: 0, before: 1, rows: {} },
    });
    expect(await database.sql(COUNTS)).toEqual(['2|2|2|2']);
    expect(await database.sql(`SELECT energy_value, count(*) FROM meals GROUP BY 1`)).toEqual([
      expect.stringMatching(/^1\.1000000000000000010*\|2$/),
    ]);
    writeBackfill(folder, [{ id: 'm-2' }, { id: 'm-3' }, { id: 'm-4' }]);
    expect(await load(folder, database)).toMatchObject({ code: 0, summary: { replaced: 1 } });
    expect(await database.sql(COUNTS)).toEqual(['3|3|3|3']);
  });

  test.skipIf(skip)('is loaded beside an archive, whose events it meets in the views', async () => {
    const [folder, database] = [await temporaryFolder(), await make()];
    const path = await archived([mealEvent(1), mealEvent(2)]);
    writeBackfill(folder, [{ id: '00000000-0000-4000-8000-000000000001' }]);
    expect(await load([path, folder], database)).toMatchObject({
      code: 0,
      summary: { rows: { events: 2, meals: 3 } },
    });
    expect(await database.sql('SELECT (SELECT count(*) FROM meals), count(*) FROM meals_latest')).toEqual([
      '3|2',
    ]);
  });

  test.skipIf(skip)('names lines that are no row, and tries them again', async () => {
    const [folder, database] = [await temporaryFolder(), await make()];
    writeBackfill(folder, [{ id: 'm-1' }]);
    const file = join(folder, 'meals.ndjson');
    const good = readFileSync(file, 'utf8');
    const odd = [
      '{"id":"m-2","colour":1}',
      '{"id":',
      '{"name":"Tea","id":"m-4"}',
      '{"id":null}',
      '[]',
      '{"id":"m-6"',
    ];
    writeFileSync(file, `${good}${odd.join('\n')}`);
    cpSync(file, join(folder, 'colours.ndjson'));
    const { code, stderr, summary } = await load(folder, database);
    expect({ code, summary }).toMatchObject({ code: 3, summary: { problems: 7, rows: { meals: 1 } } });
    for (const said of [
      's.ndjson:2: 12 bytes',
      'n:3: not JSON',
      'n:4: ',
      'n:5: ',
      'n:6: ',
      'n:7: the line is not',
      'no table colours',
    ])
      expect(stderr).toContain(said);
    writeBackfill(folder, [{ id: 'm-1' }]);
    expect(await load(folder, database)).toMatchObject({ summary: { problems: 1, rows: { meals: 1 } } });
    expect(await database.sql(COUNTS)).toEqual(['1|1|1|1']);
  });

  test.skipIf(skip)(
    'what has vanished at the service is removed, in whatever order it is loaded',
    async () => {
      const meals = Array.from({ length: 1200 }, (_, n) => ({
        id: `meal-${n + 1}`,
        user: `user-${n % 400}`,
        day: `2026-01-${String((n % 28) + 1).padStart(2, '0')}`,
      }));
      const pulls = Array.from({ length: 400 }, (_, n) => ({ user_id: `user-${n}` }));
      const left = meals.filter((_, n) => !isGone(n));
      const back = { ...(meals[17] as MadeUpMeal) };
      const list = [...left.map(({ id }) => id), back.id, 'meal-new'].toSorted();
      const folders = [
        await archived(
          eventsOf(
            meals.filter((_, n) => n % 3 > 0),
            '2026-11-01T00:00:00Z',
          ),
        ),
        await backfillOf(meals, pulls, '2026-11-10T00:00:00Z'),
        await backfillOf(left, pulls, '2026-11-20T00:00:00Z'),
        await archived(
          eventsOf(
            meals.filter((_, n) => isGone(n)),
            '2026-11-19T00:00:00Z',
          ),
        ),
        await archived(eventsOf([back, { ...back, id: 'meal-new' }], '2026-11-20T00:00:01Z')),
      ];
      for (const order of [folders, folders.toReversed()]) {
        const database = await make();
        for (const folder of order)
          expect(await load(folder, database, '--table', 'meals')).toMatchObject({ code: 0 });
        expect(await database.sql(LATEST)).toEqual(list);
        expect(await database.sql(ITEMS)).toEqual(list);
        // Each item of the newest pull is there once.
        expect(
          await database.sql('SELECT count(*), count(DISTINCT id) FROM meals WHERE _event_id IS NULL'),
        ).toEqual([`${left.length}|${left.length}`]);
        const again = await load(folders, database, '--table', 'meals');
        expect(again).toMatchObject({ code: 0, summary: { files: 0, vanished: 0 } });
        // Another table: everything is loaded again.
        expect(await load(folders, database, '--table', 'events')).toMatchObject({ summary: { files: 5 } });
        expect(await database.sql(LATEST)).toEqual(list);
        expect(await database.sql(ITEMS)).toEqual(list);
      }
    },
  );

  test.skipIf(skip)('a pull removes only what it asked for', async () => {
    const database = await make();
    const meals: readonly MadeUpMeal[] = [
      { id: 'before', day: '2026-01-09' },
      { id: 'first', day: '2026-01-10' },
      { id: 'last', day: '2026-01-20' },
      { id: 'after', day: '2026-01-21' },
      { id: 'other-user', user: 'user-2', day: '2026-01-10' },
      { id: 'other-provider', provider: 'other', day: '2026-01-10' },
    ];
    const range = { user_id: 'user-1', provider: 'made_up', since: '2026-01-10', until: '2026-01-20' };
    await load(await archived(eventsOf(meals, '2026-11-01T00:00:00Z')), database, '--table', 'meals');
    await load(await backfillOf([{ id: 'last', day: '2026-01-20' }], [range]), database);
    expect(await database.sql(LATEST)).toEqual(['after', 'before', 'last', 'other-provider', 'other-user']);
    // The table of this line has no file here, so that nothing is known of it.
    const sleep = await load(await backfillOf([], [{ ...range, table: 'sleep' }, range]), database);
    expect(sleep).toMatchObject({ code: 3, summary: { problems: 1, vanished: 0 } });
    expect(
      await load(
        await backfillOf([], [{ ...range, provider: null, began_at: '2026-12-01T00:00:00Z' }]),
        database,
      ),
    ).toMatchObject({ code: 0, summary: { vanished: 3 } });
    expect(await database.sql(LATEST)).toEqual(['after', 'before', 'other-user']);
    // A resource without a range.
    const all = { ...range, provider: null, since: null, until: null, began_at: '2026-12-02T00:00:00Z' };
    expect(await load(await backfillOf([], [all]), database)).toMatchObject({ summary: { vanished: 2 } });
    expect(await database.sql(LATEST)).toEqual(['other-user']);
  });

  test.skipIf(skip)('an erased user is gone from the rows and the pulls with the next load', async () => {
    const [root, database] = [await temporaryFolder(), await make()];
    const folder = await backfillOf(MEALS_OF_TWO, PULLS_OF_TWO);
    await load(folder, database);
    const erasure = { path: join(root, 'erasure'), folders: [folder] };
    const args = ['erase', GONE, '--now', '--config', writeConfig(root, { erasure })];
    expect(await millrace(args)).toMatchObject({ code: 0 });
    expect(await load(folder, database)).toMatchObject({ code: 0, summary: { replaced: 1 } });
    expect(await database.sql(USERS)).toEqual([STAYS, STAYS]);
  });

  test.skipIf(skip)('a pull of a series removes its samples, and no others of the table', async () => {
    const [folder, database] = [await temporaryFolder(), await make()];
    const samples = ['2026-01-05T00:00:00Z', '2026-01-05T00:01:00Z', '2026-02-01T00:00:00Z'];
    const events = ['heartrate', 'steps'].map((resource, n) => {
      const type = `daily.data.${resource}.created`;
      const data = samples.map((timestamp) => `{"timestamp":"${timestamp}","value":60}`).join(',');
      const body = `{"event_type":"${type}","data":{"source":{"provider":"made_up"},"data":[${data}]},"team_id":"team-1","user_id":"user-1","client_user_id":null}`;
      const received = { receivedAt: Date.parse('2026-11-01T00:00:00Z'), user: 'user-1' };
      return { ...contractEvent(n, { type, body: Buffer.from(body) }), ...received };
    });
    await load(await archived(events), database, '--table', 'timeseries');
    writeBackfill(folder, [], [{ user_id: 'user-1', resource: 'heartrate', table: 'timeseries' }]);
    const row: Readonly<Record<string, unknown>> = {
      user_id: 'user-1',
      resource: 'heartrate',
      timestamp: samples[0],
      value: 60,
      source_provider: 'made_up',
      _loaded_at: LOADED_AT,
    };
    const columns = columnsInRow(TABLES.entry('timeseries').definition).map(({ name }) => name);
    const members = columns.flatMap((name) => (name in row ? [[name, row[name]]] : []));
    writeFileSync(join(folder, 'timeseries.ndjson'), `${JSON.stringify(Object.fromEntries(members))}\n`);
    expect(await load(folder, database)).toMatchObject({ code: 0, summary: { vanished: 1 } });
    const latest = 'SELECT resource, count(*) FROM timeseries_latest GROUP BY 1 ORDER BY 1';
    expect(await database.sql(latest)).toEqual(['heartrate|2', 'steps|3']);
  });
});
