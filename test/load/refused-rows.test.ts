import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { parseOptions } from '../../src/sinks/postgres/config.ts';
import { createSink } from '../../src/sinks/postgres/sink.ts';
import { schemaOf } from '../../src/warehouse/sql/schema.ts';
import { TABLES } from '../../src/warehouse/tables.ts';
import { archive } from '../export/support.ts';
import { makeContext, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { inPostgres, load } from './support.ts';

const lack = lacksPostgres();
let server: Postgres;
let schemas = 0;
beforeAll(() => {
  if (lack === null) server = Postgres.start();
});
afterAll(() => {
  if (lack === null) server.stop();
});

/** A meal with this name. */
function meal(n: number, name: string, id = `meal-${n}`): ReturnType<typeof contractEvent> {
  const body = Buffer.from(JSON.stringify({ user_id: 'user-1', data: { id, name } }));
  return contractEvent(n, { type: 'daily.data.meal.created', user: 'user-1', body });
}

/** In no way a pattern, which PostgreSQL would compress. */
const LONG = Array.from({ length: 1500 }, (_, n) => ((n * 2_654_435_761) % 65_536).toString(16)).join('-');

async function archiveOf(...events: readonly ReturnType<typeof contractEvent>[]): Promise<string> {
  const path = await temporaryFolder();
  await archive(path, events);
  return path;
}

const MEALS = ['--table', 'events', '--table', 'meals'];

describe.skipIf(lack !== null)(`PostgreSQL${skipped(lack)}`, () => {
  const schema = (): string => `r${(schemas += 1)}`;

  test('a row with an id of 6,000 characters is loaded like others', async () => {
    const database = inPostgres(server, schema());
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

  test('the sink writes an event with an id of 6,000 characters, into tables of an earlier version too', async () => {
    const written = { connectionString: server.url, schema: schema(), tables: ['events', 'meals'] };
    const send = async (...events: readonly ReturnType<typeof contractEvent>[]): Promise<unknown[]> => {
      const sink = createSink(parseOptions(written), makeContext());
      await sink.open(signal);
      const results = await sink.send(
        events.map((event) => ({ event, destination: null })),
        signal,
      );
      await sink.close(signal);
      return results.map(({ status }) => status);
    };
    expect(await send(meal(1, 'a'))).toEqual(['delivered']);
    server.sql(`SET search_path TO ${written.schema};
      CREATE INDEX meals_by_event ON meals (_event_id); CREATE INDEX meals_by_key ON meals (user_id, id);`);
    expect(await send(meal(2, 'b', LONG), meal(3, 'c'))).toEqual(['delivered', 'delivered']);
    expect(server.sql(`SELECT count(*) FROM ${written.schema}.meals`)).toBe('3');
  });

  test('the printed statements load a row with an id of 6,000 characters', async () => {
    const { ndjson, sql } = await printed();
    server.sql(sql(await ndjson([{ id: 'm1' }, { id: LONG, user_id: LONG }, { id: 'm2' }])));
    expect(server.sql('SELECT count(*), max(length(id)) FROM meals')).toBe(`3|${LONG.length}`);
  });

  test('an erasure finds rows by the hash of the user id that the index has', async () => {
    const folder = await printed();
    server.sql(folder.sql(await folder.ndjson([{ id: 'm3', user_id: LONG }, { id: 'm4' }])));
    const erase = await millrace(['schema', 'meals', '--dialect', 'postgres', '--erase', LONG]);
    server.sql(`CREATE TABLE IF NOT EXISTS events (id text, user_id text); ${erase.stdout}`);
    expect(server.sql(`SELECT count(*) FROM meals WHERE id IN ('m3', 'm4')`)).toBe('1');
    const [, where = ''] = /WHERE (.*?);/.exec(erase.stdout) ?? [];
    expect(server.sql(`SET enable_seqscan = off; EXPLAIN SELECT FROM meals WHERE ${where}`)).toContain(
      'meals_on_key',
    );
  });
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
