import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { printed } from './support.ts';

const lack = lacksPostgres();
const NAME = 'café “Über” 🍜';
const USER = String.raw`o'brück\n–🍜`;

test.skipIf(lack !== null).each(['LATIN1', 'UTF8'])(
  `psql loads and erases texts as they are when its client encoding is %s${skipped(lack)}`,
  async (encoding) => {
    const server = Postgres.start();
    onTestFinished(() => server.stop());
    server.sql(`CREATE DATABASE meals ENCODING 'UTF8' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`);
    const psql = (input: string): string => {
      const { status, stdout, stderr } = spawnSync(
        'psql',
        [server.url.replace('/postgres?', '/meals?'), '-v', 'ON_ERROR_STOP=1', '-qAt'],
        { input, encoding: 'utf8', env: { ...process.env, PGCLIENTENCODING: encoding } },
      );
      expect([status, stderr]).toEqual([0, '']);
      return stdout.trim();
    };
    const bytes = (column: string): string =>
      psql(`SELECT encode(convert_to(${column}, 'UTF8'), 'hex') FROM meals ORDER BY id`);
    const folder = await temporaryFolder();
    chmodSync(folder, 0o755);
    const file = join(folder, 'café.json');
    const meals = [USER, 'kept'].map((user, n) => ({ id: String(n), user_id: user, name: NAME, data: {} }));
    writeFileSync(file, JSON.stringify({ meals }));
    await printed(['ndjson', file, '--table', 'meals', '--out', join(folder, 'ü')]);
    const plain = join(folder, 'ü', 'meals.ndjson');
    writeFileSync(`${plain}.gz`, gzipSync(readFileSync(plain)));
    for (const rows of [plain, `${plain}.gz`]) {
      psql(
        await printed(['schema', 'meals', '--dialect', 'postgres', '--only', 'tables,load', '--from', rows]),
      );
      expect(bytes('name')).toBe([NAME, NAME].map((name) => Buffer.from(name).toString('hex')).join('\n'));
    }
    psql(await printed(['schema', 'meals', '--dialect', 'postgres', '--erase', USER]));
    expect(bytes('user_id')).toBe(Buffer.from('kept').toString('hex'));
  },
);
