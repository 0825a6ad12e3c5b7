import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { millrace } from '../support/millrace.ts';
import { duckdb, exporting, filesBelow, mealEvents } from './support.ts';

const meals = mealEvents(1, 12);

/** An export of two steps, and a command line that continues it. */
async function twoSteps(format: 'ndjson' | 'parquet' | 'delta') {
  const made = await exporting(meals.slice(0, 6), { table: 'meals', format });
  await made.run();
  await made.grow(meals.slice(6));
  return { ...made, files: filesBelow(made.out, /^meals\/.*part-00000\d\./) };
}

const count = async (out: string): Promise<unknown> =>
  (
    await (
      await duckdb()
    )(`SELECT count(*)::INT FROM read_parquet('${out}/meals/**/part-*.parquet')`)
  )[0]?.[0];

describe('files of an export that are gone', () => {
  it.each(['ndjson', 'parquet', 'delta'] as const)(
    '%s: are named as long as they are lost, and made again with --again',
    async (format) => {
      const { path, out, run, files } = await twoSteps(format);
      const gone = [files[0] ?? '', files.at(-1) ?? ''];
      for (const file of gone) rmSync(join(out, file));
      const args = ['export', path, '--out', out, '--table', 'meals', '--format', format];
      const { code, stdout, stderr } = await millrace(args);
      expect([code, gone.every((file) => stderr.includes(`${file}: gone from the export`))]).toEqual([
        3,
        true,
      ]);
      expect(stdout).toContain('2 files of the export are gone');
      expect(await run()).toMatchObject({ lost: 2, steps: 0 });
      expect(await run({ again: true })).toMatchObject({ lost: 0, rows: { meals: 12 } });
      if (format !== 'ndjson') expect(await count(out)).toBe(12);
    },
  );

  it.each(['ndjson', 'parquet', 'delta'] as const)(
    '%s: an export whose list of steps is gone is not begun a second time in the same folder',
    async (format) => {
      const { path, out, run, files } = await twoSteps(format);
      rmSync(join(out, '_export.jsonl'));
      const args = ['export', path, '--out', out, '--table', 'meals', '--format', format];
      for (const again of [[], ['--again']]) expect((await millrace([...args, ...again])).code).toBe(2);
      expect(filesBelow(out, /^meals\/.*part-00000\d\./)).toEqual(files);
      rmSync(join(out, 'meals'), { recursive: true });
      rmSync(join(out, 'meal_items'), { recursive: true });
      expect(await run()).toMatchObject({ rows: { meals: 12 } });
    },
  );

  it.each(['ndjson', 'parquet', 'delta'] as const)(
    '%s: a step that the list has lost is an error, not one that is made a second time',
    async (format) => {
      const { path, out, files } = await twoSteps(format);
      const list = join(out, '_export.jsonl');
      const [terms, ...steps] = readFileSync(list, 'utf8').trimEnd().split('\n');
      const args = ['export', path, '--out', out, '--table', 'meals', '--format', format];
      const damage: [kept: string[], code: number, says: string][] = [
        [steps.slice(1), 1, 'step 1 is missing'],
        [steps.slice(0, 1), 2, 'that _export.jsonl does not list'],
        [[], 2, 'that _export.jsonl does not list'],
      ];
      for (const [kept, ends, says] of damage) {
        writeFileSync(list, `${[terms, ...kept].join('\n')}\n`);
        const { code, stderr } = await millrace(args);
        expect([code, stderr]).toEqual([ends, expect.stringContaining(says)]);
        expect(filesBelow(out, /^meals\/.*part-00000\d\./)).toEqual(files);
      }
    },
  );

  it('--list-new and `schema --load` list the others, say which are gone, and end with 3', async () => {
    const { out, files } = await twoSteps('ndjson');
    const last = files.at(-1) ?? '';
    rmSync(join(out, last));
    const listed = await millrace(['export', '--out', out, '--list-new']);
    expect([
      listed.code,
      listed.stdout
        .split('\n')
        .filter((line) => line.startsWith('meals/'))
        .sort(),
    ]).toEqual([3, files.filter((file) => file !== last)]);
    expect(listed.stderr).toContain(`${last}: gone`);
    const schema = ['schema', '--dialect', 'duckdb', '--load', '--export', out, '--after', '1'];
    const loads = await millrace(schema);
    expect([loads.code, loads.stderr.includes(`${last}: gone`)]).toEqual([3, true]);
    expect(loads.stdout).toContain('meal_items');
  });

  it('a Delta table of one step is made again; the log of another cannot be', async () => {
    const { out, run } = await twoSteps('delta');
    rmSync(join(out, 'meals/_delta_log'), { recursive: true });
    await expect(run()).rejects.toMatchObject({
      code: 'table_changed',
      detail: expect.stringContaining('_delta_log'),
    });
    expect(existsSync(join(out, 'meals/_delta_log'))).toBe(false);
    const one = await exporting(meals, { table: 'meals', format: 'delta' });
    await one.run();
    rmSync(one.table, { recursive: true });
    expect(await one.run()).toMatchObject({ lost: 0 });
    expect(await count(one.out)).toBe(12);
  });
});
