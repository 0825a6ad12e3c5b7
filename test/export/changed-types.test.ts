import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { archive, exported } from './support.ts';

test('files with a column of another type are never beside each other', async () => {
  const path = await temporaryFolder();
  const out = await temporaryFolder();
  const file = join(await temporaryFolder(), 'tables.yaml');
  const archived = (n: number, value: unknown): Promise<unknown> => {
    const body = Buffer.from(JSON.stringify({ data: { id: `${n}`, value } }));
    return archive(path, [contractEvent(n, { type: 'daily.data.reading.created', body })]);
  };
  const exportedAs = async (type: string, ...more: string[]): Promise<readonly [number | null, string]> => {
    const columns = [
      { name: 'id', type: 'text', required: true },
      { name: 'value', type },
    ];
    const table = { name: 'readings', events: ['daily.data.reading.'], key: ['id'], columns };
    writeFileSync(file, JSON.stringify({ version: 1, tables: [table] }));
    const args = ['export', path, '--out', out, '--tables', file, '--table', 'readings', ...more];
    const { code, stderr } = await millrace(args);
    return [code, stderr];
  };
  await archived(1, 1);
  expect((await exportedAs('integer'))[0]).toBe(0);
  await archived(2, 'two');
  expect(await exportedAs('text')).toEqual([
    2,
    expect.stringContaining('table readings: column value is integer, and text now'),
  ]);
  expect((await exportedAs('text', '--again'))[0]).toBe(0);
  expect((await exportedAs('text'))[0]).toBe(0);
});

test('events without a table are counted by type, whatever a type is called', async () => {
  const [path, out] = [await temporaryFolder(), await temporaryFolder()];
  const types = ['constructor', '__proto__', 'toString', 'made.up'];
  await archive(
    path,
    types.flatMap((type, n) => [contractEvent(2 * n, { type }), contractEvent(2 * n + 1, { type })]),
  );
  const { without_table: counted } = await exported([path], out);
  expect(new Map(Object.entries(counted))).toEqual(new Map(types.map((type) => [type, 2])));
});
