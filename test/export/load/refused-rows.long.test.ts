import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadCommand } from '../../../src/cli/load/command.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { schemaOf } from '../../../src/tables/sql/schema.ts';
import { TABLES } from '../../../src/tables/tables.ts';
import { run } from '../../cli/run.ts';
import { archive, archived } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { skipped } from '../../support/requirements.ts';
import { until } from '../../support/until.ts';
import { delivered, inDuckDB, inPostgres, load, postgresServer, postgresSink } from './support.ts';

const { lack, server, newSchema } = postgresServer();

/** A meal with this name. */
function meal(n: number, name: string, id = `meal-${n}`): ReturnType<typeof contractEvent> {
  const body = Buffer.from(JSON.stringify({ user_id: 'user-1', data: { id, name } }));
  return contractEvent(n, { type: 'daily.data.meal.created', user: 'user-1', body });
}

/** In no way a pattern, which PostgreSQL would compress. */
const LONG = Array.from({ length: 1500 }, (_, n) => ((n * 2_654_435_761) % 65_536).toString(16)).join('-');

const archiveOf = (...events: readonly ReturnType<typeof contractEvent>[]): Promise<string> =>
  archived(events);

const COUNTS = `SELECT count(*), (SELECT count(*) FROM meals), (SELECT count(*) FROM meals WHERE name = 'leek') FROM events`;
const MEALS = ['--table', 'events', '--table', 'meals'];

describe.skipIf(lack !== null)(`PostgreSQL${skipped(lack)}`, () => {
  test('a row with an id of 6,000 characters is loaded like others', async () => {
    const database = inPostgres(server(), newSchema());
    const path = await archiveOf(
      meal(1, 'a'),
      meal(2, 'b', LONG),
      contractEvent(3, { id: LONG, user: LONG }),
      meal(4, 'c'),
    );
    expect(await load(path, database, ...MEALS)).toMatchObject({ code: 0, summary: { rejects: 0 } });
    expect(await database.sql('SELECT count(*), max(length(id)) FROM events')).toEqual([`4|${LONG.length}`]);
    expect(await database.sql('SELECT count(*) FROM meals_latest')).toEqual(['4']);
  });

  test('the sink writes an event with an id of 6,000 characters', async () => {
    const schema = newSchema();
    const { send } = await postgresSink(server().url, schema, ['events', 'meals']);
    expect(await send([meal(2, 'b', LONG), meal(3, 'c')])).toEqual(delivered([2, 3]));
    expect(server().sql(`SELECT count(*) FROM ${schema}.meals`)).toBe('2');
  });

  test('rows that the table does not take are set aside by name, and loaded when it takes them', async () => {
    const database = inPostgres(server(), newSchema());
    await load(await archiveOf(meal(1, 'soup')), database, ...MEALS);
    await database.sql(`ALTER TABLE meals ADD CONSTRAINT no_leek CHECK (name <> 'leek')`);
    const events = Array.from({ length: 40 }, (_, n) => meal(n + 2, n % 10 === 3 ? 'leek' : `dish ${n}`));
    const path = await archiveOf(...events);
    for (let times = 0; times < 2; times += 1) {
      const { code, summary, stderr } = await load(path, database);
      expect([code, summary]).toMatchObject([3, { rejects: 4, rows: { events: 40, meals: 36 } }]);
      expect(stderr).toMatch(/\.ndjson\S*:14: meals: refused: .*"no_leek" \(23514\)/);
      expect(await database.sql(COUNTS)).toEqual(['41|37|0']);
    }
    await database.sql('ALTER TABLE meals DROP CONSTRAINT no_leek');
    expect(await load(path, database)).toMatchObject({ code: 0, summary: { rejects: 0, replaced: 1 } });
    expect(await database.sql(COUNTS)).toEqual(['41|41|4']);
  });

  test('a load that follows an archive does not try refused rows again in each round', async () => {
    const database = inPostgres(server(), newSchema());
    await load(await archiveOf(meal(1, 'soup')), database, ...MEALS);
    await database.sql(`ALTER TABLE meals ADD CONSTRAINT no_leek CHECK (name <> 'leek')`);
    const path = await archiveOf(meal(2, 'leek'));
    const stop = new AbortController();
    const args = [path, ...database.to, '--follow', '--every', '20ms', '--json'];
    const following = run(loadCommand, args, {}, stop.signal);
    for (let n = 3; n < 7; n += 1) {
      await until(`${n - 1} events`, async () => (await database.sql(COUNTS))[0]?.startsWith(`${n - 1}|`));
      await archive(path, [meal(n, `dish ${n}`)]);
    }
    stop.abort();
    await following;
    expect(await database.sql('SELECT count(*) = max(load) FROM _millrace_loads')).toEqual(['t']);
  });

  test('rows that the encoding of the database cannot have are set aside, without their values', async () => {
    server().sql(`CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    const to = ['--to', server().url.replace('/postgres?', '/latin?')];
    const path = await archiveOf(meal(1, 'soup'), meal(2, 'soup \u{1f372}'), meal(3, 'crème'));
    const { code, summary, stderr } = await load(path, { to }, ...MEALS);
    expect([code, summary]).toMatchObject([3, { rejects: 2, rows: { events: 2, meals: 2 } }]);
    expect(stderr).toMatch(/:2: events: refused: .*\n.*:2: meals: refused: /);
    expect(stderr).not.toContain('soup');
  });

  test('an event whose row the table does not take is a dead letter, and the others are delivered', async () => {
    const schema = newSchema();
    const sink = await postgresSink(server().url, schema, ['events', 'meals']);
    server().sql(`ALTER TABLE ${schema}.meals ADD CONSTRAINT no_leek CHECK (name <> 'leek')`);
    const send = (...names: readonly string[]) => sink.send(names.map((name, n) => meal(n + 1, name)));
    const refused = { status: 'refused', code: 'rejected', reason: expect.stringContaining('no_leek') };
    expect(await send('soup', 'leek')).toMatchObject([refused, { ...refused, batch: true }]);
    expect(await send('leek')).toMatchObject([refused]);
    expect(await send('soup')).toEqual(delivered(['soup']));
  });

  test('the printed statements load a row with an id of 6,000 characters', async () => {
    const { ndjson, sql } = await printed();
    server().sql(sql(await ndjson([{ id: 'm1' }, { id: LONG, user_id: LONG }, { id: 'm2' }])));
    expect(server().sql('SELECT count(*), max(length(id)) FROM meals')).toBe(`3|${LONG.length}`);
  });

  test('the printed statements set aside by line the rows that the table does not take, and load the others', async () => {
    const { ndjson, sql } = await printed();
    const rows = ['soup', 'leek', 'a name that is too long', 'dish'].map((name, n) => ({
      id: `p${n}`,
      name,
    }));
    const statements = sql(await ndjson(rows));
    const { createView } = schemaOf(TABLES.entry('meals'), 'postgres');
    server().sql(`${statements}\nDROP VIEW IF EXISTS meals_latest; DELETE FROM meals;`);
    server().sql(
      `ALTER TABLE meals ADD CONSTRAINT no_leek CHECK (name <> 'leek'), ALTER name TYPE varchar(10);`,
    );
    for (let times = 0; times < 2; times += 1) {
      const { status, stderr } = spawnSync('psql', [server().url, '-q', '-v', 'ON_ERROR_STOP=1'], {
        input: statements,
        encoding: 'utf8',
      });
      expect(status, stderr).toBe(0);
      expect(stderr.match(/line \d+ of the rows of meals .*\(\w+\)/g)).toEqual([
        'line 3 of the rows of meals is set aside, as the database refuses it (22001)',
        'line 2 of the rows of meals is set aside, as the database refuses it (23514)',
      ]);
      expect(stderr).not.toContain('leek');
      expect(server().sql('SELECT id FROM meals ORDER BY 1')).toBe('p0\np3');
    }
    server().sql(`ALTER TABLE meals DROP CONSTRAINT no_leek, ALTER name TYPE text; ${createView}`);
  });

  test('the printed statements set aside what the encoding of the database cannot have, whatever that of the client', async () => {
    server().sql(`CREATE DATABASE other_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    const { ndjson, sql } = await printed();
    const rows = ['soup', 'soup \u{1f372}', 'crème'].map((name, n) => ({ id: `e${n}`, name }));
    const statements = sql(await ndjson(rows));
    for (const [database, count] of [
      ['postgres', '3'],
      ['other_latin', '2'],
    ] as const) {
      const url = server().url.replace('/postgres?', `/${database}?`);
      const psql = (input: string, encoding: string): string =>
        spawnSync('psql', [url, '-qAt', '-v', 'ON_ERROR_STOP=1'], {
          input,
          encoding: 'utf8',
          env: { ...process.env, PGCLIENTENCODING: encoding },
        }).stdout.trim();
      psql(statements, 'LATIN1');
      expect(
        psql(`SELECT count(*), max(name) FILTER (WHERE id = 'e2') FROM meals WHERE id LIKE 'e_'`, 'UTF8'),
      ).toBe(`${count}|crème`);
    }
  });

  test('an erasure finds rows by the hash of the user id that the index has', async () => {
    const folder = await printed();
    server().sql(folder.sql(await folder.ndjson([{ id: 'm3', user_id: LONG }, { id: 'm4' }])));
    const erase = await millrace(['schema', 'meals', '--dialect', 'postgres', '--erase', LONG]);
    server().sql(`CREATE TABLE IF NOT EXISTS events (id text, user_id text); ${erase.stdout}`);
    expect(server().sql(`SELECT count(*) FROM meals WHERE id IN ('m3', 'm4')`)).toBe('1');
    const [, where = ''] = /WHERE (.*?);/.exec(erase.stdout) ?? [];
    expect(server().sql(`SET enable_seqscan = off; EXPLAIN SELECT FROM meals WHERE ${where}`)).toContain(
      'meals_on_key',
    );
  });
});

test('DuckDB sets aside by name the rows that a table does not take', async () => {
  const database = inDuckDB(join(await temporaryFolder(), 'loaded.duckdb'));
  await load(await archiveOf(meal(1, '1')), database, ...MEALS);
  await database.sql('DROP VIEW meals_latest');
  await database.sql('ALTER TABLE meals ALTER COLUMN name TYPE SMALLINT');
  const path = await archiveOf(
    ...Array.from({ length: 20 }, (_, n) => meal(n + 2, n === 7 ? 'leek' : `${n}`)),
  );
  const { code, summary, stderr } = await load(path, database);
  expect([code, summary]).toMatchObject([3, { rejects: 1, rows: { events: 20, meals: 19 } }]);
  expect(stderr).toMatch(/:8: meals: refused: Conversion Error: Could not convert/);
  expect(stderr).not.toContain('leek');
  expect(await database.sql('SELECT count(*), (SELECT count(*) FROM meals) FROM events')).toEqual(['21|20']);
});

/** Files of rows of meals, and the statements that load one. */
async function printed(): Promise<{
  ndjson(rows: readonly object[]): Promise<string>;
  sql(file: string): string;
}> {
  const folder = await temporaryFolder();
  chmodSync(folder, 0o755);
  let files = 0;
  return {
    ndjson: async (rows) => {
      const out = join(folder, String((files += 1)));
      mkdirSync(out, 0o755);
      const file = join(out, 'input.ndjson');
      writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
      const ended = await millrace(['ndjson', file, '--table', 'meals', '--out', out]);
      expect(ended.code, ended.stderr).toBe(0);
      return join(out, 'meals.ndjson');
    },
    sql: (file) => {
      const {
        createTable,
        createIndexes,
        load: statements,
      } = schemaOf(TABLES.entry('meals'), 'postgres', file);
      return [createTable, createIndexes, statements].join('\n');
    },
  };
}
