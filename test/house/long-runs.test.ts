import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
/** What says which tests are run, and how often. Others, MILLRACE_TEST_…, say where something is or what to show. */
const READ = /\bprocess\.env(?:\.|\[\s*['"`])\w+|\{[^{}]*\} = process\.env\b/g;
const NAME = /\bMILLRACE_(?!TEST_)\w+/g;
/** These say which of many runs, or keep what it leaves; they make none longer. */
const NO_LONGER = /_(?:SEED|KEEP)$/;
/** What is longer without reading a variable itself; modules of tests with it make those long that import them. */
const LONG = /support\/run-count|\blongRun: true/;

const script = readFileSync(join(ROOT, '.ci/run'), 'utf8');
const [, set = ''] = /^long=\(\n([\s\S]*?)^\)$/m.exec(script) ?? [];
const [, paths = ''] = /^env "\$\{long\[@\]\}" npx vitest run ([\s\S]*?) \$\(report /m.exec(script) ?? [];

const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.[jt]s$/.test(name))
  .map((name) => {
    const text = readFileSync(join(ROOT, 'test', name), 'utf8');
    const read = Array.from(text.matchAll(READ), ([found]) => found.match(NAME) ?? []).flat();
    return { name: `test/${name}`, text, read: read.filter((each) => !NO_LONGER.test(each)) };
  });

test('CI sets every variable that lengthens or enables tests', () => {
  const asked = new Set(files.flatMap(({ read }) => read));
  expect(asked.size).toBeGreaterThan(10);
  const given = Array.from(set.matchAll(/\b(MILLRACE_\w+)=\S+/g), ([, name = '']) => name);
  expect(given.toSorted()).toEqual([...asked].toSorted());
});

test('CI runs every file with a test that such a variable lengthens or enables', () => {
  const run = execFileSync('bash', ['-c', `printf '%s\\n' ${paths}`], { cwd: ROOT, encoding: 'utf8' });
  const filters = run.trimEnd().split('\n');
  const [tests, modules] = [true, false].map((wanted) =>
    files.filter(({ name }) => name.endsWith('.test.ts') === wanted),
  ) as [typeof files, typeof files];
  const shared = modules.filter(({ text }) => LONG.test(text)).map(({ name }) => basename(name));
  const long = tests.filter(
    ({ read, text }) =>
      read.length > 0 || LONG.test(text) || shared.some((name) => text.includes(`/${name}'`)),
  );
  expect(long.length).toBeGreaterThan(20);
  const left = long.filter(({ name }) => !filters.some((filter) => filter !== '' && name.includes(filter)));
  expect(left.map(({ name }) => name)).toEqual([]);
});
