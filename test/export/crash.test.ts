import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WorkFolder } from '../../src/lib/work-folder.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { archived, duckdb, exporting, mealEvent, mealEvents } from './support.ts';

const DAY = 86_400_000;
const meals = mealEvents(1, 30);

async function expectAll(out: string, count: number): Promise<void> {
  const sql = await duckdb();
  const from = `read_parquet('${out}/events/**/*.parquet')`;
  expect(await sql(`SELECT count(*)::INT, count(DISTINCT id)::INT FROM ${from}`)).toEqual([[count, count]]);
}

describe('export after a crash', () => {
  it('interrupted, it continues where it was', async () => {
    const { out, run } = await exporting(meals, { stepBytes: 1 });
    const abort = new AbortController();
    const onProgress = ({ done }: { done: number }): void => void (done === 2 && abort.abort());
    const first = await run({ signal: abort.signal, onProgress });
    expect(first).toMatchObject({ complete: false, steps: 2, records: 20 });
    await expectAll(out, 20);
    expect(await run()).toMatchObject({ complete: true, steps: 1, before: 2 });
    await expectAll(out, 30);
  });

  it('while another command writes the folder it is refused', async () => {
    const { out, run } = await exporting(meals);
    const other = await WorkFolder.take(out);
    await expect(run()).rejects.toMatchObject({ code: 'folder_in_use' });
    other.release();
    expect(await run()).toMatchObject({ complete: true });
  });
});

it('more partitions than files can be open: every row is there, and every file whole', async () => {
  const days = 50;
  const events = Array.from({ length: days * 2 }, (_, n) =>
    mealEvent(n + 1, { receivedAt: Date.UTC(2026, 0, 1) + (n % days) * DAY + n }),
  );
  const { out, run } = await exporting(events, {}, { partitionBy: [] });
  expect(await run()).toMatchObject({ steps: 1, files: days * 2 });
  const sql = await duckdb();
  const from = `read_parquet('${out}/events/**/*.parquet', hive_partitioning = true)`;
  expect(
    await sql(`SELECT count(*)::INT, count(DISTINCT dt)::INT, bool_and(dt = received_at::DATE) FROM ${from}`),
  ).toEqual([[days * 2, days, true]]);
});

describe('millrace export', () => {
  it('prints a summary, names what is wrong, and lists what it wrote', async () => {
    const path = await archived([
      ...meals,
      mealEvent(31, { body: Buffer.from('{"data":{"name":"no id"}}') }),
    ]);
    const out = await temporaryFolder();
    const ended = await millrace(['export', path, '--out', out, '--table', 'meals', '--json']);
    expect([ended.code, JSON.parse(ended.stdout)]).toEqual([
      3,
      expect.objectContaining({ ok: false, rows: { meals: 30, meal_items: 45, _rejects: 1 }, rejects: 1 }),
    ]);
    expect(ended.stderr).toContain('meals: no_identity: id is missing');
    expect(ended.stderr).toContain('meals: never_seen has no column; it is in extra');
    const step = JSON.parse(readFileSync(join(out, '_export.jsonl'), 'utf8').split('\n')[1] ?? '') as {
      files: { file: string; bytes: number }[];
    };
    for (const { file, bytes } of step.files) expect(statSync(join(out, file)).size).toBe(bytes);
  });

  it('takes a day for all of that day', async () => {
    const [path, out] = [await archived(meals), await temporaryFolder()];
    const days = ['--since', '2026-11-22', '--until', '2026-11-22'];
    const ended = await millrace(['export', path, '--out', out, ...days, '--json']);
    expect(JSON.parse(ended.stdout)).toMatchObject({ ok: true, records: 10, passed_over: 2 });
  });

  it('is a usage error for a table that is not made of events, or a time that is none', async () => {
    const path = await temporaryFolder();
    mkdirSync(join(path, 'archive'));
    const table = await millrace(['export', path, '--out', path, '--table', 'markers']);
    expect([table.code, table.stderr]).toEqual([
      2,
      expect.stringContaining('the tables are events, timeseries'),
    ]);
    const time = await millrace(['export', path, '--out', path, '--since', 'yesterday']);
    expect([time.code, time.stderr]).toEqual([
      2,
      expect.stringContaining('--since yesterday: must be a day or time'),
    ]);
  });
});
