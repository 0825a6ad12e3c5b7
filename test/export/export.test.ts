import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { describe, expect, it } from 'vitest';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import { schemaOf } from '../../src/tables/sql/schema.ts';
import { TABLES } from '../../src/tables/tables.ts';
import { records } from '../sinks/support.ts';
import { duckdb, EVERYTHING, exported, exporting, filesBelow, mealEvents, mealOf } from './support.ts';

const MEALS = 60;
const meals = mealEvents(1, MEALS);
const numbers = meals.map((_, n) => n + 1);

/** Sum of kcal over all foods, exact, in units of 10^-18. */
const kcalUnits = numbers.reduce(
  (sum, n) => sum + BigInt(mealOf(n).foods) * (BigInt(n) * 10n ** 18n + 10n ** 17n + 1n),
  0n,
);
const foods = numbers.reduce((sum, n) => sum + mealOf(n).foods, 0);

describe('export to Parquet, read by DuckDB', () => {
  it.each(['gzip', 'zstd', 'none'] as const)(
    'events, %s: counts and texts are the archive’s',
    async (compression) => {
      const { path, out, run } = await exporting(meals, { compression });
      expect(await run()).toMatchObject({
        records: MEALS,
        rows: { events: MEALS },
        files: 3,
        rejects: 0,
        problems: 0,
      });
      const sql = await duckdb();
      const from = `read_parquet('${out}/events/**/*.parquet', hive_partitioning = true)`;
      const all = await records(path);
      expect(
        await sql(
          `SELECT id, regexp_extract(event::VARCHAR, 'never_seen":\\{"n":([^}]*)', 1), strftime(received_at, '%Y-%m-%dT%H:%M:%S.%gZ'), dt::VARCHAR FROM ${from} ORDER BY id`,
        ),
      ).toEqual(
        all
          .map(({ record, body }) => [
            record.id,
            /"never_seen":\{"n":([^}]*)\}/.exec(body.toString())?.[1],
            record.received_at,
            record.received_at.slice(0, 10),
          ])
          .sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
      );
    },
  );

  it('types are those of the DDL, and numbers are exact', async () => {
    const { out, run } = await exporting(meals, { table: 'meals' });
    await run();
    const sql = await duckdb();
    for (const table of ['meals', 'meal_items']) {
      await sql(schemaOf(TABLES.get(table)!, 'duckdb').createTable);
      const types = (name: string): Promise<unknown[][]> =>
        sql(`SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM ${name}) ORDER BY 1`);
      expect(await types(`read_parquet('${out}/${table}/**/*.parquet', hive_partitioning = false)`)).toEqual(
        await types(table),
      );
    }
    const items = `read_parquet('${out}/meal_items/**/*.parquet')`;
    expect(await sql(`SELECT count(*)::INT, (sum(energy_value) * 1)::VARCHAR FROM ${items}`)).toEqual([
      [foods, `${kcalUnits / 10n ** 18n}.${String(kcalUnits % 10n ** 18n).padStart(18, '0')}`],
    ]);
    const [first] = await sql(
      `SELECT name, source_id::VARCHAR, timestamp::VARCHAR, calendar_date::VARCHAR, extra::VARCHAR
       FROM read_parquet('${out}/meals/**/*.parquet') WHERE id = '${mealOf(1).id}'`,
    );
    expect(first).toEqual([
      'Meal\n1',
      '9007199254740993',
      '2026-01-02 08:00:00.123456+00',
      '2026-01-02',
      `{"never_seen":{"n":${mealOf(1).kcal}}}`,
    ]);
  });

  it('another reader sees the same', async () => {
    const terms = { table: 'meals', compression: 'none', partition: 'none' } as const;
    const { out, run } = await exporting(meals, terms);
    await run();
    const file = await asyncBufferFromFile(join(out, 'meal_items/part-000001.parquet'));
    const rows = await parquetReadObjects({
      file,
      columns: ['item_index', 'meal_timestamp', 'extra', 'name'],
    });
    expect(rows).toHaveLength(foods);
    expect(rows[0]).toEqual({
      item_index: 0n,
      meal_timestamp: new Date('2026-01-04T08:00:00.123Z'),
      extra: null,
      name: 'Made up, 0 "tbsp"',
    });
  });

  it('rows are the same however the body around the document is written', async () => {
    const document = `{"id":"ID","name":"a\\u00e9","user_id":"user-1","data":{"Made up":{"energy":{"value":1.50}}}}`;
    const bodies = [
      `{"event_type":"x","data":${document},"user_id":"user-1"}`,
      ` { "data" : ${document} , "user_id" : "user-1" } `,
      `{"d\\u0061ta":${document},"user_id":"user-1"}`,
      `{"data":{"id":"before","data":{"Gone":{}}},"user_id":"user-1","data":${document}}`,
      `{"data":${document.replace('"name":"a\\u00e9",', '"name":"twice",$&')},"user_id":"user-1"}`,
    ];
    const events = bodies.map((body, n) =>
      contractEvent(n + 1, { body: Buffer.from(body.replaceAll('ID', `meal-${n}`)), user: 'user-1' }),
    );
    const { out, run } = await exporting(events, { table: 'meals' });
    expect(await run()).toMatchObject({ rejects: 0 });
    const sql = await duckdb();
    const [own, inside] = ['meals', 'meal_items'].map(
      (name) => `read_parquet('${out}/${name}/**/*.parquet')`,
    );
    expect(
      await sql(
        `SELECT m.id, m.name, i.name, i.energy_value::VARCHAR, m._event_id = i._event_id, m.user_id
         FROM ${own} m JOIN ${inside} i ON m.id = i.meal_id ORDER BY 1`,
      ),
    ).toEqual(bodies.map((_, n) => [`meal-${n}`, 'aé', 'Made up', '1.500000000000000000', true, 'user-1']));
  });

  it('bodies that are hard to keep come through', async () => {
    const bodies = [...awkwardBodies(), Buffer.from([0x7b, 0xff, 0x7d])];
    const events = bodies.map((body, i) => contractEvent(i + 1, { body, user: `\ud800"\\ ${i}` }));
    const { out, run, files } = await exporting(events);
    // JSON nested deeper than any table takes is the one thing that makes no row.
    const { messages, rejects } = await run();
    expect([rejects, messages.filter((line) => line.includes('too_deep'))]).toEqual([
      1,
      [expect.any(String)],
    ]);
    const sql = await duckdb();
    const from = `read_parquet('${out}/events/**/*.parquet')`;
    expect(
      await sql(`SELECT count(*)::INT, count(event)::INT, count(body_base64)::INT FROM ${from}`),
    ).toEqual([[bodies.length - 1, bodies.length - 2, 3]]);
    expect(files()).toContain('_rejects/part-000001.ndjson.gz');
  });
});

describe('export to NDJSON', () => {
  it.each(['gzip', 'zstd', 'none'] as const)(
    '%s: DuckDB reads the same sums with the load statement',
    async (compression) => {
      const { out, run } = await exporting(meals, { table: 'meals', format: 'ndjson', compression });
      await run();
      const sql = await duckdb();
      for (const table of ['meals', 'meal_items']) {
        const { createTable, load } = schemaOf(TABLES.get(table)!, 'duckdb', `${out}/${table}/**/*.ndjson*`);
        await sql(createTable);
        for (const statement of load.split(/(?<=;)\n/)) await sql(statement);
      }
      expect(await sql('SELECT count(*)::INT FROM meals')).toEqual([[MEALS]]);
      expect(await sql('SELECT count(*)::INT FROM meal_items')).toEqual([[foods]]);
      expect(Number((await sql('SELECT sum(energy_value)::DOUBLE FROM meal_items'))[0]?.[0])).toBeCloseTo(
        Number(kcalUnits) / 1e18,
        6,
      );
    },
  );
});

describe('what is exported when', () => {
  it('what has changed in the archive, or gone from it, is exported again and replaces what was', async () => {
    const { path, out, run, files } = await exporting(meals, {}, { compress: 'none', partitionBy: ['date'] });
    await run({ stepBytes: 1 });
    expect(files()).toHaveLength(3);
    const [first = '', second = ''] = filesBelow(path, /\.ndjson$/);
    const lines = readFileSync(join(path, first), 'utf8').split('\n');
    writeFileSync(join(path, first), lines.slice(1).join('\n'));
    writeFileSync(join(path, '_manifest.jsonl'), '');
    writeFileSync(join(path, second), '');
    expect(await run()).toMatchObject({ read: 2, before: 1, replaced: 2, records: 19 });
    const sql = await duckdb();
    const from = `read_parquet('${out}/events/**/*.parquet')`;
    expect(await sql(`SELECT count(*)::INT, count(DISTINCT id)::INT FROM ${from}`)).toEqual([[39, 39]]);
  });

  it('what is gone from a file that now holds nothing wanted goes from the export too', async () => {
    const order = contractEvent(900, { type: 'labtest.order.created' });
    const selection = { ...EVERYTHING, types: ['labtest.'] };
    const archiveOf = [contractEvent(1), order];
    const { path, run, files } = await exporting(archiveOf, { selection }, { compress: 'none' });
    expect(await run()).toMatchObject({ records: 1, files: 1 });
    const manifest = join(path, '_manifest.jsonl');
    const line = JSON.parse(readFileSync(manifest, 'utf8')) as { file: string };
    const [kept = ''] = readFileSync(join(path, line.file), 'utf8').split('\n');
    writeFileSync(join(path, line.file), `${kept}\n`);
    const changed = {
      sha256: hash('sha256', `${kept}\n`),
      records: 1,
      types: { 'daily.data.meal.created': 1 },
    };
    writeFileSync(manifest, `${JSON.stringify({ ...line, ...changed })}\n`);
    expect(await run()).toMatchObject({ records: 0, passed_over: 1, replaced: 1 });
    expect(files()).toEqual([]);
  });

  it('takes time, type, team and user, and files that hold none are not read', async () => {
    const other = contractEvent(900, { type: 'labtest.order.created', team: 'team-2' });
    const { path, out, run } = await exporting([...meals, other]);
    const day = { since: '2026-11-22T00:00:00.000Z', until: '2026-11-23T00:00:00.000Z' };
    const selection = { ...EVERYTHING, ...day };
    expect(await run({ selection })).toMatchObject({ records: 20, passed_over: 2 });
    for (const [name, wanted, count] of [
      ['type', { types: ['labtest.'] }, 1],
      ['team', { teams: ['team-2'] }, 1],
      ['user', { users: ['user-1'] }, numbers.filter((n) => n % 7 === 1).length],
    ] as const) {
      const only = { selection: { ...EVERYTHING, ...wanted } };
      expect(await exported([path], join(out, name), only)).toMatchObject({ records: count });
    }
  });

  it('a folder holds one export', async () => {
    const { run } = await exporting(meals.slice(0, 3));
    await run();
    await expect(run({ table: 'meals' })).rejects.toMatchObject({
      code: 'usage',
      detail: expect.stringContaining('table events, format parquet'),
    });
  });
});
