import { join } from 'node:path';
import { expect, it } from 'vitest';
import { KeyStore } from '../../src/privacy/seal/key-store.ts';
import { MASTER, MASTER_TEXT, ringOf, subject } from '../privacy/seal/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { archive, duckdb, exported, mealEvents, EVERYTHING } from './support.ts';

const meals = mealEvents(1, 21);

async function sealedArchive(): Promise<{ path: string; out: string; store: string }> {
  const folder = await temporaryFolder();
  const store = join(folder, 'keys');
  const path = join(folder, 'archive');
  await archive(path, meals, { encrypt: { store, masterKey: MASTER_TEXT } });
  return { path, store, out: join(folder, 'export') };
}

it('a sealed archive is exported with its keys, and after an erasure the next export is without the user', async () => {
  const { path, out, store } = await sealedArchive();
  const selection = { ...EVERYTHING, types: ['daily.'] };
  const first = await exported([path], out, { table: 'meals', selection, opener: () => ringOf(store) });
  expect(first).toMatchObject({ rows: { meals: 21 }, erased: 0 });
  const keys = await KeyStore.open(store, MASTER);
  await keys.destroy(subject('user-3'));
  await keys.close();
  const second = await exported([path], out, { table: 'meals', selection, opener: () => ringOf(store) });
  expect(second).toMatchObject({ rows: { meals: 18 }, erased: 3, replaced: first.files });
  const sql = await duckdb();
  expect(
    await sql(
      `SELECT count(*)::INT, count_if(user_id = 'user-3')::INT FROM read_parquet('${out}/meals/**/*.parquet')`,
    ),
  ).toEqual([[18, 0]]);
});

it('without the keys nothing is written, and the error says what is missing', async () => {
  const { path, out, store } = await sealedArchive();
  const without = await millrace(['export', path, '--out', out]);
  expect([without.code, without.stderr]).toEqual([
    2,
    expect.stringContaining('the keys that open it were not given'),
  ]);
  const unset = await millrace(['export', path, '--out', out, '--keys', store]);
  expect([unset.code, unset.stderr]).toEqual([
    2,
    expect.stringContaining('--master-key-env MILLRACE_MASTER_KEY: not set'),
  ]);
  const env = { MILLRACE_MASTER_KEY: MASTER_TEXT };
  const ended = await millrace(['export', path, '--out', out, '--keys', store, '--json'], { env });
  expect([ended.code, JSON.parse(ended.stdout)]).toEqual([
    0,
    expect.objectContaining({ rows: { events: 21 } }),
  ]);
});
