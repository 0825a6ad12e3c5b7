import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exportCommand } from '../../src/cli/export.ts';
import { ndjsonCommand } from '../../src/cli/ndjson.ts';
import { archive, mealEvent } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { run } from './run.ts';

test('no command writes rows into an archive, nor below one: readers would take them for events', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'archive');
  await archive(path, [mealEvent(1)]);
  const before = readdirSync(path).toSorted();
  for (const out of [path, join(path, 'rows'), join(path, 'dt=2026-01-01', 'rows')]) {
    await expect(run(exportCommand, [path, '--out', out])).rejects.toThrow(/belongs to the archive/);
    await expect(run(ndjsonCommand, ['-', '--table', 'meals', '--out', out])).rejects.toThrow(
      /belongs to the archive/,
    );
  }
  expect(readdirSync(path).toSorted()).toEqual(before);
  const beside = join(folder, 'rows');
  expect((await run(exportCommand, [path, '--out', beside])).exit).toBe(0);
  expect(existsSync(join(beside, '_export.jsonl'))).toBe(true);
});

test('an archive is known through a link too', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'archive');
  await archive(path, [mealEvent(1)]);
  mkdirSync(join(path, 'below'));
  symlinkSync(join(path, 'below'), join(folder, 'link'));
  await expect(run(exportCommand, [path, '--out', join(folder, 'link')])).rejects.toThrow(
    /belongs to the archive/,
  );
});
