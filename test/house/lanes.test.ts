import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** Variables that tests read. Others, MILLRACE_TEST_…, say where something is or what to show. */
const KNOWN = ['MILLRACE_LONG', 'MILLRACE_RUNS', 'MILLRACE_SEED'];
const READ = /\bprocess\.env(?:\.|\[\s*['"`])\w+|\{[^{}]*\} = process\.env\b/g;
const NAME = /\bMILLRACE_(?!TEST_)\w+/g;

const root = join(import.meta.dirname, '..');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.[jt]s$/.test(name))
  .map((name) => ({ name, text: readFileSync(join(root, name), 'utf8') }));

test('the tests read no variables but those of the lanes', () => {
  const read = files.flatMap(({ text }) =>
    Array.from(text.matchAll(READ), ([found]) => found.match(NAME) ?? []).flat(),
  );
  expect([...new Set(read)].toSorted()).toEqual(KNOWN);
});

test('what is tried more often in the long lane is in it', () => {
  const counted = files
    .filter(({ name, text }) => !/^(?:house|support)\//.test(name) && text.includes('runCount({'))
    .map(({ name }) => name);
  expect(counted.length).toBeGreaterThan(20);
  expect(counted.filter((name) => !/\.(?:long|property)\.test\.ts$/.test(name))).toEqual([]);
});

test('what is called a property says how often it is tried in each lane, and is tried in the quick one', () => {
  const properties = files.filter(({ name }) => name.endsWith('.property.test.ts'));
  expect(
    properties.filter(({ text }) => !text.includes('runCount({ quick: ')).map(({ name }) => name),
  ).toEqual([]);
});
