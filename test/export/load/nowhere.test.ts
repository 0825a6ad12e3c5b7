import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mealEvent, archived } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';

test.each(['have.csv', 'have.json', ':memory:'])(
  'nothing is loaded into %s, which keeps nothing',
  async (name) => {
    const path = await archived([mealEvent(1)]);
    const folder = await temporaryFolder();
    const file = name.startsWith(':') ? name : join(folder, name);
    const text = name.endsWith('json') ? '{"a":1}\n' : 'a,b\n1,2\n';
    if (file !== name) writeFileSync(file, text);
    const ended = await millrace(['load', path, '--to', `duckdb:${file}`]);
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([
      1,
      '',
      expect.stringContaining('no DuckDB file'),
    ]);
    if (file !== name) expect(readFileSync(file, 'utf8')).toBe(text);
  },
);

test('a name that is no usual one is that of a new database', async () => {
  const path = await archived([mealEvent(1)]);
  const file = join(await temporaryFolder(), 'new.csv');
  const load = () => millrace(['load', path, '--to', `duckdb:${file}`, '--json']);
  expect((await load()).code).toBe(0);
  expect(JSON.parse((await load()).stdout)).toMatchObject({ before: 1 });
});
