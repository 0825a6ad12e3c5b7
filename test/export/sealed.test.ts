import { join } from 'node:path';
import { expect, it } from 'vitest';
import { KeyStore } from '../../src/privacy/seal/key-store.ts';
import { MASTER, MASTER_TEXT, subject } from '../privacy/seal/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { inDuckDB } from './load/support.ts';
import { archive, duckdb, mealEvents } from './support.ts';

const env = { MILLRACE_MASTER_KEY: MASTER_TEXT };
const COUNTS = `count(*)::INT, (count(*) FILTER (user_id = 'user-3'))::INT`;

/** Each command that reads a whole archive: its options, and how many rows it has made, of them those of the erased user. */
const COMMANDS = {
  export: (folder: string) => ({
    options: ['--table', 'meals', '--out', join(folder, 'export')],
    count: async () =>
      (await duckdb())(`SELECT ${COUNTS} FROM read_parquet('${folder}/export/meals/**/*.parquet')`),
  }),
  load: (folder: string) => {
    const database = inDuckDB(join(folder, 'sealed.duckdb'));
    const count = async () =>
      (await database.sql(`SELECT ${COUNTS} FROM meals`)).map((row) => row.split('|').map(Number));
    return { options: [...database.to, '--table', 'meals'], count };
  },
  'schema infer': () => ({ options: [], count: null }),
};

it.each(Object.entries(COMMANDS))(
  '%s: a sealed archive is read with its keys only, and without the user once a key is destroyed',
  async (name, made) => {
    const folder = await temporaryFolder();
    const [path, store] = [join(folder, 'archive'), join(folder, 'keys')];
    await archive(path, mealEvents(1, 21), { encrypt: { store, masterKey: MASTER_TEXT } });
    const { options, count } = made(folder);
    const command = [...name.split(' '), path, ...options, '--json'];
    const refused = async (said: string, ...more: string[]): Promise<void> =>
      expect(await millrace([...command, ...more])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(said),
      });
    await refused('the keys that open it were not given');
    await refused('--master-key-env MILLRACE_MASTER_KEY: not set', '--keys', store);
    const opened = async () => {
      const { code, stdout, stderr } = await millrace([...command, '--keys', store], { env });
      expect(code, stderr).toBe(0);
      return JSON.parse(stdout) as object;
    };
    expect(await opened()).toMatchObject({ ok: true, records: 21, erased: 0 });
    const keys = await KeyStore.open(store, MASTER);
    await keys.destroy(subject('user-3'));
    await keys.close();
    expect(await opened()).toMatchObject({ ok: true, records: 18, erased: 3 });
    if (count === null) return;
    expect(await count()).toEqual([[18, 0]]);
    expect(await opened()).toMatchObject({ ok: true, records: 0 });
  },
);
