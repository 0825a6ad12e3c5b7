import { describe, expect, test } from 'vitest';
import { parseTables } from '../../src/tables/learned/read-tables.ts';
import { schemaOf } from '../../src/tables/sql/schema.ts';
import { skipped } from '../support/requirements.ts';
import { definitionOf, shaped } from './infer-support.ts';
import { WAREHOUSES } from './warehouses.ts';

/** Columns that every table of PostgreSQL, Redshift or DuckDB has. */
const NAMES = ['xmin', 'xmax', 'cmin', 'cmax', 'ctid', 'oid', 'tableoid', 'rowid'];
const document = Object.fromEntries(NAMES.map((name, n) => [name, n]));

test('fields named as columns of the system become columns of another name', () => {
  const definition = definitionOf([document]);
  const { rows, rejects } = shaped(definition, [document]);
  expect(rejects).toEqual([]);
  expect(Object.keys(rows['raw_thing']?.[0] ?? {}).filter((name) => NAMES.includes(name))).toEqual([]);
  expect(Object.values(rows['raw_thing']?.[0] ?? {})).toEqual(expect.arrayContaining(NAMES.map((_, n) => n)));
});

describe.each(WAREHOUSES)('$title', ({ dialect, lack, open }) => {
  test.skipIf(lack !== null)(`makes the table that is learned of them${skipped(lack)}`, async () => {
    const warehouse = await open();
    const definition = definitionOf([document]);
    await warehouse.run(schemaOf({ definition, document: definition }, dialect).createTable);
    expect(await warehouse.rows('SELECT count(*) FROM raw_thing')).toEqual([['0']]);
  });
});

test.each(NAMES)('a definition with a column %s is refused, and says what to do', (name) => {
  const columns = `[{ name: ${name}, type: text }]`;
  const file = `version: 1\ntables:\n  - { name: things, events: [raw.], columns: ${columns} }`;
  expect(() => parseTables(file, 'tables.yaml')).toThrow(
    `tables.yaml:3:55: tables[0].columns[0].name: databases have a column ${name} of their own; use another name, with \`from: ${name}\``,
  );
});
