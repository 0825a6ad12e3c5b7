import { describe, expect, test } from 'vitest';
import { Places } from '../../../src/archive/places.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import { DuckDBDatabase } from '../../../src/export/load/duckdb.ts';
import type { LoadSummary } from '../../../src/export/load/options.ts';
import { runLoad } from '../../../src/export/load/run.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { PostgresDatabase } from '../../../src/sinks/postgres/database.ts';
import type { Column, ColumnType, TableDefinition } from '../../../src/tables/definition.ts';
import { TABLES } from '../../../src/tables/tables.ts';
import { archive, archived } from '../support.ts';
import { QUIET } from './quiet.ts';
import { kindsOf, postgresServer } from './support.ts';

const { signal } = new AbortController();

type Types = Readonly<Record<string, ColumnType | 'required'>>;

function defined(types: Types): TableDefinition {
  const columns = Object.entries({ id: 'required', ...types } as Types).map(([name, type]): Column => {
    const column = { name, from: name, description: name };
    return type === 'required' ? { ...column, type: 'text', required: true } : { ...column, type };
  });
  const events = { types: ['daily.data.reading.'], member: 'data' } as const;
  return { name: 'readings', description: 'made up', key: ['id'], events, columns };
}

function reading(n: number, data: object): JournalEvent {
  const type = 'daily.data.reading.created';
  return contractEvent(n, { type, body: Buffer.from(JSON.stringify({ event_type: type, data })) });
}

const FIRST = [
  { id: 'a', n: 5, b: true, d: '2026-01-02', t: 'x"y', gone: 'g' },
  { id: 'b', n: 'five', i: 1.5, gone: 'g' },
];

describe.each(kindsOf(postgresServer()))('a column of another type, in $kind', ({ skip, make }) => {
  const given = async () => {
    const path = await archived(FIRST.map((data, n) => reading(n, data)));
    const { place, sql } = await make();
    const load = async (types: Types): Promise<LoadSummary> => {
      const [address, schema] = place;
      const database =
        schema === undefined
          ? await DuckDBDatabase.open(address)
          : await PostgresDatabase.open({ connectionString: address, schema, timeout: 60_000 }, signal);
      try {
        return await runLoad(database, {
          paths: [path],
          places: new Places(),
          tables: TABLES.with([defined(types)]),
          wanted: ['readings'],
          stepBytes: 2 ** 30,
          signal,
          ...QUIET,
        });
      } finally {
        await database.close();
      }
    };
    return { path, sql, load };
  };

  test.skipIf(skip)('is altered where nothing is lost, and values in extra get their place', async () => {
    const { path, sql, load } = await given();
    await load({ n: 'integer', b: 'boolean', d: 'date', i: 'integer', t: 'text', gone: 'required' });
    const wider = { n: 'json', b: 'json', d: 'timestamp', i: 'decimal', t: 'json' } as const;
    await archive(path, [reading(7, { id: 'c', n: 'six', t: ['z'], d: '2026-01-02T03:00:00Z' })]);
    // The archive, whose first file was loaded as something else, is loaded again.
    expect(await load(wider)).toMatchObject({ records: 3, rejects: 0, complete: true });
    expect(
      await sql(
        `SELECT id, n, b, d = '2026-01-02T03:00:00Z'::timestamptz, abs(i - 1.5) < 0.001, t FROM readings_latest ORDER BY id`,
      ),
    ).toEqual([
      expect.stringMatching(/^a\|5\|true\|\w*\|\|"x\\"y"$/),
      expect.stringMatching(/^b\|"five"\|\|\|t(rue)?\|$/),
      expect.stringMatching(/^c\|"six"\|\|t(rue)?\|\|\["z"\]$/),
    ]);
    expect(await load(wider)).toMatchObject({ records: 0 });
    const texts = { n: 'text', b: 'text', d: 'text', i: 'text', t: 'text' } as const;
    expect(await load(texts)).toMatchObject({ records: 3, complete: true });
    expect(await sql('SELECT id, n, d, t FROM readings ORDER BY id')).toEqual([
      'a||2026-01-02|x"y',
      'b|five||',
      'c|six|2026-01-02T03:00:00Z|',
    ]);
  });

  test.skipIf(skip)('is refused where values could be lost; dropped, the table is made again', async () => {
    const { sql, load } = await given();
    await load({ n: 'text' });
    await expect(load({ n: 'integer' })).rejects.toThrow(
      'table readings: column n is text in the database and integer in the definition now',
    );
    expect(await sql('SELECT id, n FROM readings_latest ORDER BY id')).toEqual(['a|', 'b|five']);
    await sql('DROP TABLE "readings" CASCADE');
    expect(await load({ n: 'integer' })).toMatchObject({ records: 2 });
    expect(await sql('SELECT id, n FROM readings_latest ORDER BY id')).toEqual(['a|5', 'b|']);
    // Dropped without a change, it comes again as well.
    await sql('DROP TABLE "readings" CASCADE');
    expect(await load({ n: 'integer' })).toMatchObject({ records: 2 });
    expect(await sql('SELECT id, n FROM readings_latest ORDER BY id')).toEqual(['a|5', 'b|']);
  });

  test.skipIf(skip)(
    'is mended where an earlier version noted it only; types that somebody gave stay',
    async () => {
      const { path, sql, load } = await given();
      await load({ n: 'text', i: 'integer' });
      await sql(
        `DROP VIEW readings_latest; UPDATE readings SET n = NULL; ALTER TABLE readings ALTER COLUMN n TYPE bigint USING CAST(n AS bigint);
       ALTER TABLE readings ALTER COLUMN i TYPE varchar(9)`,
      );
      await archive(path, [reading(7, { id: 'c', n: 'six' })]);
      expect(await load({ n: 'text', i: 'integer' })).toMatchObject({ records: 3 });
      expect(await sql('SELECT id, n FROM readings ORDER BY id')).toEqual(['a|', 'b|five', 'c|six']);
      expect(
        await sql(
          `SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema()
             AND table_name = 'readings' AND column_name = 'i' AND upper(data_type) LIKE '%CHAR%'`,
        ),
      ).toEqual(['1']);
      expect(await load({ n: 'text', i: 'integer' })).toMatchObject({ records: 0 });
    },
  );
});
