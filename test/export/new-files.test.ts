import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { changesAfter } from '../../src/export/new-files.ts';
import { temporaryName } from '../../src/export/outputs.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { archive, exporting, mealEvent, mealEvents } from './support.ts';

const meals = mealEvents(1, 30);

async function twoSteps() {
  const made = await exporting(meals.slice(0, 20), { table: 'meals' });
  await made.run();
  await made.grow(meals.slice(20));
  return made;
}

async function listed(out: string, ...args: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await millrace(['export', '--out', out, '--list-new', ...args]);
  expect(code, stderr).toBe(0);
  return stdout.split('\n').filter((line) => line !== '');
}

const names = (step: number): string[] =>
  ['meal_items', 'meals'].flatMap((table) =>
    [21, 22, 23].map((day) => `${table}/dt=2026-11-${day}/part-00000${step}.parquet`),
  );

describe('export --list-new', () => {
  it('lists what came after a step, and the same again until the next is named', async () => {
    const { out } = await twoSteps();
    expect(await listed(out)).toEqual([...names(1), ...names(2)]);
    for (let times = 0; times < 2; times += 1) expect(await listed(out, '--after', '1')).toEqual(names(2));
    expect(await listed(out, 'step')).toEqual(['2']);
    expect(await listed(out, '--after', '2')).toEqual([]);
    expect(await listed(out, 'days', '--after', '1')).toEqual(names(2).map((name) => name.slice(0, -20)));
  });

  it('lists what was replaced, with its facts as JSON, and ends with the step', async () => {
    const { out, run } = await twoSteps();
    await run({ again: true });
    expect(await listed(out, 'removed', '--after', '2')).toEqual([...names(1), ...names(2)]);
    expect(await listed(out)).toEqual(names(3));
    const lines = (await listed(out, '--after', '2', '--json')).map((line) => JSON.parse(line) as object);
    const ledger = readFileSync(join(out, '_export.jsonl'), 'utf8').trim().split('\n');
    const { files } = JSON.parse(ledger.at(-1) ?? '') as { files: object[] };
    expect(lines.slice(12, -1)).toEqual(
      files.map((file) => ({ step: 3, action: 'load', dt: expect.any(String), ...file })),
    );
    expect(lines[0]).toEqual({
      step: 3,
      action: 'remove',
      table: 'meal_items',
      dt: '2026-11-21',
      file: names(1)[0],
    });
    expect(lines.at(-1)).toEqual({ step: 3, action: 'end' });
  });

  it('names days that have lost their last file apart', async () => {
    const options = { compress: 'none', partitionBy: [] };
    const { path, out, run } = await exporting(meals, { table: 'meals' }, options);
    await run();
    const { file } = JSON.parse(readFileSync(join(path, '_manifest.jsonl'), 'utf8').split('\n')[0] ?? '') as {
      file: string;
    };
    const kept = readFileSync(join(path, file), 'utf8')
      .split('\n')
      .filter((line) => !line.includes('"2026-11-22T'));
    writeFileSync(join(path, file), kept.join('\n'));
    writeFileSync(join(path, '_manifest.jsonl'), '');
    await run();
    expect(await listed(out, 'emptied', '--after', '1')).toEqual([
      'meal_items/dt=2026-11-22',
      'meals/dt=2026-11-22',
    ]);
    expect(await listed(out, 'days', '--after', '1')).toHaveLength(4);
  });

  it('leaves out a step that is not there as a whole yet', async () => {
    const { out, run } = await twoSteps();
    const [file = ''] = names(2);
    renameSync(join(out, file), join(out, '_work', temporaryName(file)));
    appendFileSync(join(out, '_export.jsonl'), '{"step":3,"repl');
    expect(await listed(out, 'step')).toEqual(['1']);
    expect(await listed(out)).toEqual(names(1));
    // The next run brings it to an end.
    await run();
    expect(await listed(out)).toEqual([...names(1), ...names(2)]);
  });

  it('exports first when it is given archives, and says on stderr what it did', async () => {
    const { path, out } = await twoSteps();
    await archive(path, [mealEvent(31)]);
    const args = ['export', path, '--out', out, '--table', 'meals', '--list-new', '--after', '2'];
    const { code, stdout, stderr } = await millrace(args);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^meal_items\/.*\nmeals\/.*part-000003\.parquet\n$/),
    ]);
    expect(stderr).toContain('1 rows');
  });

  it('refuses a step that the export has not reached, and a folder without one', async () => {
    const { out } = await twoSteps();
    await expect(changesAfter(out, 3)).rejects.toMatchObject({
      code: 'usage',
      detail: expect.stringContaining('has only 2 steps'),
    });
    await expect(changesAfter(await temporaryFolder(), 0)).rejects.toMatchObject({
      code: 'usage',
      detail: expect.stringContaining('holds no export'),
    });
    const { code, stderr } = await millrace(['export', '--out', out]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('name an archive to export, or say --list-new'),
    ]);
  });
});
