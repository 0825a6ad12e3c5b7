import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { archive, mealEvent } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { inDuckDB, load } from './support.ts';

test('an archive that is named twice, or with a copy of it, is loaded once', async () => {
  const [path, copy, folder] = [await temporaryFolder(), await temporaryFolder(), await temporaryFolder()];
  await archive(
    path,
    [1, 2, 3].map((n) => mealEvent(n)),
  );
  cpSync(path, copy, { recursive: true });
  await archive(copy, [mealEvent(4)]);
  const database = inDuckDB(join(folder, 'loaded.duckdb'));
  const twice = [path, `${path}/`, copy];
  expect(await load(twice, database, '--table', 'meals')).toMatchObject({
    code: 0,
    summary: { files: 4, records: 4, duplicates: 0 },
  });
  expect(await load(twice, database, '--table', 'meals')).toMatchObject({
    code: 0,
    summary: { files: 0, before: 4 },
  });
  expect(await database.sql('SELECT count(*) FROM meals')).toEqual(['4']);
});
