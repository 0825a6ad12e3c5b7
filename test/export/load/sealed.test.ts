import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KeyStore } from '../../../src/privacy/seal/key-store.ts';
import { archive, mealEvents } from '../support.ts';
import { MASTER, MASTER_TEXT, subject } from '../../privacy/seal/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { inDuckDB } from './support.ts';

test('a sealed archive is loaded with its keys; once a key is destroyed, the next load is without the user', async () => {
  const folder = await temporaryFolder();
  const store = join(folder, 'keys');
  const path = join(folder, 'archive');
  const meals = mealEvents(1, 21);
  await archive(path, meals, { encrypt: { store, masterKey: MASTER_TEXT } });
  const database = inDuckDB(join(folder, 'sealed.duckdb'));
  const load = ['load', path, ...database.to, '--table', 'meals', '--json'];
  const without = await millrace(load);
  expect([without.code, without.stderr]).toEqual([
    2,
    expect.stringContaining('keys that open it were not given'),
  ]);
  const withKeys = async (): Promise<unknown> => {
    const env = { MILLRACE_MASTER_KEY: MASTER_TEXT };
    return JSON.parse((await millrace([...load, '--keys', store], { env })).stdout);
  };
  expect(await withKeys()).toMatchObject({ ok: true, rows: { meals: 21 }, erased: 0 });
  const keys = await KeyStore.open(store, MASTER);
  await keys.destroy(subject('user-3'));
  await keys.close();
  expect(await withKeys()).toMatchObject({ ok: true, rows: { meals: 18 }, erased: 3 });
  expect(await withKeys()).toMatchObject({ ok: true, files: 0 });
  expect(await database.sql(`SELECT count(*), count(*) FILTER (user_id = 'user-3') FROM meals`)).toEqual([
    '18|0',
  ]);
});
