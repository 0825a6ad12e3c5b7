import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { integer, text, type Column, type TableDefinition } from '../../../src/tables/definition.ts';
import { Tables, TABLES } from '../../../src/tables/tables.ts';
import { exporting, filesBelow, mealEvent, mealEvents, mealOf } from '../support.ts';
import { skipped } from '../../support/requirements.ts';
import { deltalake, lacksDeltalake, type TableFacts } from './deltalake.ts';

const idsOf = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => mealOf(from + n).id);
const delta = { format: 'delta', table: 'meals' } as const;
const commit = (table: string, version: number) =>
  join(table, '_delta_log', `${String(version).padStart(20, '0')}.json`);

const lacks = lacksDeltalake();

describe.skipIf(lacks !== null)(`Delta tables as deltalake reads them${skipped(lacks)}`, () => {
  const ask = deltalake();
  const facts = (table: string, more: object = {}) => ask<TableFacts>('facts', table, more);
  const ids = async (table: string): Promise<string[]> => {
    const { rows } = await ask<{ rows: unknown[][] }>('rows', table, { columns: ['id'] });
    return rows.map(([id]) => String(id)).sort(inOrder);
  };

  it('every row is there once, with the types and values of the Parquet export', async () => {
    const { out, table, run } = await exporting(mealEvents(1, 30), delta);
    expect(await run()).toMatchObject({ complete: true, rows: { meals: 30, meal_items: 45 } });
    const found = await facts(table);
    expect(found).toMatchObject({ version: 0, rows: 30, partitions: ['dt'], protocol: [1, 2] });
    expect(found.types).toMatchObject({
      id: 'PrimitiveType("string")',
      timestamp: 'PrimitiveType("timestamp")',
      source_id: 'PrimitiveType("long")',
      extra: 'PrimitiveType("string")',
      dt: 'PrimitiveType("date")',
    });
    expect(await ids(table)).toEqual(idsOf(1, 30));
    const columns = ['source_id', 'timestamp', 'dt', '_received_at'];
    const { rows } = await ask<{ rows: string[][] }>('rows', table, { columns });
    for (const [source, , dt, at] of rows)
      expect([source, dt]).toEqual(['9007199254740993', at?.slice(0, 10)]);
    expect(rows.map(([, time]) => time)).toContain('2026-01-02 08:00:00.123456+00:00');
    const items = await ask<{ rows: string[][] }>('rows', join(out, 'meal_items'), {
      columns: ['meal_id', 'energy_value'],
    });
    const expected = Array.from({ length: 30 }, (_, n) => mealOf(n + 1)).flatMap(({ id, kcal, foods }) =>
      Array.from({ length: foods }, () => `${id} ${kcal}`),
    );
    expect(items.rows.map(([id, kcal]) => `${id} ${kcal?.slice(0, kcal.indexOf('.') + 19)}`).sort()).toEqual(
      expected.sort(),
    );
  });

  it('a filter of deltalake finds in every column what is there; statistics name no id and no word', async () => {
    const { out, table, run } = await exporting(mealEvents(1, 12), delta);
    await run({ stepBytes: 1 });
    for (const name of ['meals', 'meal_items']) {
      const { lost, columns } = await ask<{ lost: string[]; columns: number }>('filters', join(out, name));
      expect(lost).toEqual([]);
      expect(columns).toBeGreaterThan(5);
    }
    const [, stats = ''] = /"stats":("(?:[^"\\]|\\.)*")/.exec(readFileSync(commit(table, 0), 'utf8')) ?? [];
    expect(JSON.parse(JSON.parse(stats) as string)).toEqual({ numRecords: 4 });
  });

  it('a table with a column dt of its own is refused where days are a column', async () => {
    const tables = madeUp(text('id', 'Made up'), text('dt', 'Made up'));
    const { run } = await exporting(mealEvents(1, 3), { ...delta, table: MADE_UP.name, tables });
    await expect(run()).rejects.toMatchObject({ code: 'usage' });
  });

  it('a checkpoint stands for the commits below it', async () => {
    const { table, grow } = await exporting(mealEvents(1, 3), delta);
    for (let n = 1; n <= 12; n += 1) await grow([mealEvent(3 + n)]);
    expect(readFileSync(join(table, '_delta_log/_last_checkpoint'), 'utf8')).toContain('"version":10');
    expect(await facts(table, { version: 4 })).toMatchObject({ version: 4, rows: 8 });
    for (let version = 0; version <= 10; version += 1) rmSync(commit(table, version));
    expect(await facts(table)).toMatchObject({ version: 11, rows: 15 });
    // And for us.
    expect(await grow([mealEvent(16)])).toMatchObject({ steps: 1, rows: { meals: 1 } });
    expect(await ids(table)).toEqual(idsOf(1, 16));
  });

  it('others append after us, we after them, and what they checkpoint we read', async () => {
    const { table, run, grow } = await exporting(mealEvents(1, 3), delta);
    await run();
    await ask('append', table, { rows: [{ id: 'theirs' }] });
    await grow(mealEvents(4, 6));
    await ask('append', table, { rows: [{ id: 'theirs, too' }] });
    await ask('checkpoint', table);
    for (let version = 0; version <= 3; version += 1) rmSync(commit(table, version));
    await grow(mealEvents(7, 9));
    expect(await ids(table)).toEqual([...idsOf(1, 9), 'theirs', 'theirs, too']);
  });

  it('exported again, it holds the same once, and nothing of before is kept', async () => {
    const { table, run } = await exporting(mealEvents(1, 9), delta);
    await run();
    await ask('append', table, { rows: [{ id: 'theirs' }] });
    await run({ again: true });
    expect(await ids(table)).toEqual([...idsOf(1, 9), 'theirs']);
    expect(filesBelow(table, /part-000001\.parquet$/)).toEqual([]);
    expect(existsSync(commit(table, 0))).toBe(false);
    const { files } = await ask<{ files: string[] }>('vacuum', table);
    expect(files.filter((file) => existsSync(join(table, file)))).toEqual([]);
  });

  it('a step whose files another program has rewritten is not replaced in silence', async () => {
    const { table, run, grow } = await exporting(mealEvents(1, 3), delta);
    await run();
    await grow(mealEvents(4, 6));
    await ask('optimize', table);
    await expect(run({ again: true })).rejects.toMatchObject({ code: 'table_changed' });
    expect(await ids(table)).toEqual(idsOf(1, 6));
    // Appending continues.
    await grow(mealEvents(7, 9));
    expect(await ids(table)).toEqual(idsOf(1, 9));
  });

  it('a table gains the columns that its definition has gained, and keeps those it has lost', async () => {
    const id = text('id', 'id', { required: true });
    const having = (...columns: Column[]) => ({ tables: madeUp(id, ...columns) });
    const { table, run, grow } = await exporting([mealEvent(1)], { ...delta, table: MADE_UP.name });
    await run(having(integer('a', 'a')));
    await grow([mealEvent(2)], having(text('name', 'name')));
    expect(Object.keys((await facts(table)).types)).toEqual(expect.arrayContaining(['id', 'a', 'name']));
    const { rows } = await ask<{ rows: unknown[][] }>('rows', table, { columns: ['id', 'a', 'name'] });
    expect(new Set(rows)).toEqual(
      new Set([
        [mealOf(1).id, null, null],
        [mealOf(2).id, null, 'Meal\n2'],
      ]),
    );
    await expect(grow([mealEvent(3)], having(integer('name', 'n')))).rejects.toMatchObject({
      code: 'usage',
      detail: expect.stringContaining('column name') as unknown,
    });
  });

  it('killed before or after each commit, and run again, each row is there once', async () => {
    const { out, run } = await exporting(mealEvents(1, 3), delta);
    await run();
    const table = join(out, 'meal_items');
    const { version, rows } = await facts(table);
    // As it is when the process ends after the first table's commit.
    rmSync(commit(table, version));
    expect(await run()).toMatchObject({ steps: 0 });
    expect(await facts(table)).toMatchObject({ version, rows });
    expect(await facts(join(out, 'meals'))).toMatchObject({ version: 0, rows: 3 });
    // And when its answer was lost: nothing is to be done.
    appendFileSync(join(out, '_export.jsonl'), '{"step":2,"repl');
    expect(await run()).toMatchObject({ steps: 0 });
    expect(await facts(table)).toMatchObject({ version, rows });
  });

  it('a table that is not of this export is refused', async () => {
    const { out, table, run } = await exporting(mealEvents(1, 3), delta);
    await run();
    rmSync(join(out, '_export.jsonl'));
    await expect(run()).rejects.toMatchObject({ code: 'usage' });
    expect(await ids(table)).toEqual(idsOf(1, 3));
  });
});

const inOrder = (a = '', b = ''): number => (a < b ? -1 : 1);
const madeUp = (...columns: Column[]): Tables => new Tables([{ ...MADE_UP, columns }]);

const MADE_UP: TableDefinition = {
  name: 'made_up',
  description: 'made up',
  key: [],
  columns: [],
  events: TABLES.get('meals')?.definition.events ?? { types: [], member: 'data' },
};
