import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { archived, filesBelow, mealEvents } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { inDuckDB, load } from './support.ts';

const MEALS = 12;

/** An archive of twelve meals; `damage` breaks a line of its last file, and `heal` puts the file back. */
async function archiveOfMeals() {
  const path = await archived(mealEvents(1, MEALS));
  const file = join(path, filesBelow(path, /\.ndjson/).at(-1) ?? '');
  const whole = readFileSync(file);
  const [first = '', ...rest] = gunzipSync(whole).toString().split('\n');
  const damaged = [first, ...rest.map((line, n) => (n === 0 ? line.replace(/^\{"id"/, '{"iX') : line))];
  return {
    path,
    damage: () => writeFileSync(file, gzipSync(damaged.join('\n'))),
    heal: () => writeFileSync(file, whole),
  };
}

test('a file with a damaged line is partly loaded for as long as it is, and whole once it is whole', async () => {
  const { path, damage, heal } = await archiveOfMeals();
  const database = inDuckDB(join(await temporaryFolder(), 'loaded.duckdb'));
  const count = () => database.sql('SELECT count(*), count(DISTINCT id) FROM events');
  damage();
  for (let run = 0; run < 3; run += 1) {
    expect(await load(path, database)).toMatchObject({ code: 3, summary: { ok: false, problems: 1 } });
    expect(await count()).toEqual(['11|11']);
  }
  heal();
  expect(await load(path, database)).toMatchObject({ code: 0, summary: { files: 1, problems: 0 } });
  expect(await count()).toEqual(['12|12']);
  expect(await load(path, database)).toMatchObject({ code: 0, summary: { files: 0 } });
});

test('rows of a backfill are refused, with the command that loads them', async () => {
  const [path, database] = [
    await temporaryFolder(),
    inDuckDB(join(await temporaryFolder(), 'loaded.duckdb')),
  ];
  writeFileSync(join(path, 'meals.ndjson'), '{"meal_id":"made-up","user_id":"made-up"}\n');
  const { code, stdout } = await millrace(['load', path, ...database.to]);
  expect(code).toBe(3);
  expect(stdout).toMatch(
    /^1 records or files could not be read$[^]*^no record of an archive .*millrace schema --dialect/m,
  );
});
