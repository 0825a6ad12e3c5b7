import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CATALOGUE } from '../../src/core/errors.ts';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name: name.replaceAll('\\', '/'), text: textOf(`src/${name}`) }));

/** Codes of what a part has to say of events, sinks, files and rows: literals, constants of a room, members of a union, keys of a table. */
const LITERAL = /\b(?:code: |happened\(|differ\()'([a-z]+(?:_[a-z]+)*)'/g;
const CONSTANT = /^(?:export )?const [A-Z_]+ = '([a-z]+(?:_[a-z]+)+)';$/gm;
const UNION = /^export type (?:Difference|Reject)Code =([^;]+);/gm;
const FAULTS = /^export const WHAT_TO_DO = \{([^]+?)^\}/gm;
const INVALID = /^export const INVALID = \{([^}]+)\}/gm;
/** Of a table. */
const KEY = /^ {2}([a-z_]+):/gm;
const QUOTED = /'([a-z_]+)'/g;

/** Of zod; of the service's client, which tells them in sentences; of a sender that went away. */
const NOT_SHOWN = new Set([
  'custom',
  'gone',
  'unrecognized_keys',
  'timed_out',
  'unreachable',
  'connection_lost',
  'answer_malformed',
]);
/** Rooms whose constants are codes. */
const ROOMS = /^(?:core|deliver|sinks)\//;
/** Not codes of an event: commands say which repair they make, and what is not there yet. */
const REPAIRS = /^archive\/repair/;

const found = sources.flatMap(({ name, text }) => {
  if (REPAIRS.test(name) || name.startsWith('sandbox/')) return [];
  const each = (pattern: RegExp, of = text): string[] =>
    Array.from(of.matchAll(pattern), ([, code = '']) => code);
  return [
    ...each(LITERAL),
    ...(ROOMS.test(name) ? each(CONSTANT) : []),
    ...each(UNION).flatMap((union) => each(QUOTED, union)),
    ...each(FAULTS).flatMap((table) => each(KEY, table).map((fault) => `store_${fault}`)),
    ...each(INVALID).flatMap((table) => each(KEY, table)),
  ];
});

const catalogued = new Set(Object.keys(CATALOGUE));
const page = Array.from(
  textOf('docs/reference/errors.md').matchAll(/^- ((?:`[a-z_]+`(?:,\s+)?)+):/gm),
  ([, cell = '']) => Array.from(cell.matchAll(/`([a-z_]+)`/g), ([, code = '']) => code),
).flat();

test('every code that is shown is on the page of codes, or an error of the catalogue', () => {
  expect(found.length).toBeGreaterThan(100);
  const missing = found.filter(
    (code) => !catalogued.has(code) && !page.includes(code) && !NOT_SHOWN.has(code),
  );
  expect([...new Set(missing)]).toEqual([]);
});

test('no code is on the page that the program has not', () => {
  const all = sources.map(({ text }) => text).join('\n');
  const has = (code: string): boolean => found.includes(code) || all.includes(`'${code}'`);
  expect(page.filter((code) => !has(code))).toEqual([]);
});
