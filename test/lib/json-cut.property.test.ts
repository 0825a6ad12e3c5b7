import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonCutter, type CutLists } from '../../src/lib/json-cut.ts';
import { parsePath } from '../../src/lib/json-paths.ts';
import { runCount } from '../support/run-count.ts';

interface Written {
  readonly only?: readonly string[];
  readonly mask?: readonly string[];
  readonly remove?: readonly string[];
}

function cutter({ only, mask = [], remove = [] }: Written, text?: string): JsonCutter {
  const lists: CutLists = {
    only: only?.map(parsePath) ?? null,
    mask: mask.map(parsePath),
    remove: remove.map(parsePath),
  };
  return new JsonCutter(lists, text);
}

function cut(json: string, lists: Written, text?: string): string {
  return cutter(lists, text).apply(Buffer.from(json)).toString();
}

const deep = (levels: number): string => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;

describe('what is cut out of JSON text', () => {
  test.each<[string, Written, string]>([
    // Whatever is not named stays as it is written.
    [
      '{ "a" :1.10, "b":\t[ 1E400 , -0 ],"n":"x" }',
      { mask: ['/n'] },
      '{ "a" :1.10, "b":\t[ 1E400 , -0 ],"n":null }',
    ],
    ['{"a":{"n":1,"n":2},"n":3}', { mask: ['/a/n'] }, '{"a":{"n":null,"n":null},"n":3}'],
    ['{"\\u006e":"x","N":"y"}', { mask: ['/n'] }, '{"\\u006e":null,"N":"y"}'],
    ['{"a":[{"n":1},{"n":{"m":[2]}},7]}', { mask: ['/a/*/n'] }, '{"a":[{"n":null},{"n":null},7]}'],
    ['{"a":[[0,1],[2,3]]}', { mask: ['/a/1/0'] }, '{"a":[[0,1],[null,3]]}'],
    ['{"a":{"1":1,"01":2}}', { mask: ['/a/1'] }, '{"a":{"1":null,"01":2}}'],
    ['{"n":1,"a":{"n":2,"b":[{"n":3}]}}', { mask: ['/**/n'] }, '{"n":null,"a":{"n":null,"b":[{"n":null}]}}'],
    ['{"n":1,"a":{"n":2,"b":[{"n":3}]}}', { mask: ['/*/**/n'] }, '{"n":1,"a":{"n":null,"b":[{"n":null}]}}'],
    [
      '{"a/b":1,"c~d":2,"*":3,"x":4}',
      { mask: ['/a~1b', '/c~0d', '/~2'] },
      '{"a/b":null,"c~d":null,"*":null,"x":4}',
    ],
    [
      '{"__proto__":{"n":1},"constructor":2}',
      { mask: ['/__proto__/n'] },
      '{"__proto__":{"n":null},"constructor":2}',
    ],
    // With its comma and the white space around it.
    ['{ "a":1 , "b":2 , "c":3 }', { remove: ['/a'] }, '{ "b":2 , "c":3 }'],
    ['{ "a":1 , "b":2 , "c":3 }', { remove: ['/b'] }, '{ "a":1 , "c":3 }'],
    ['{ "a":1 , "b":2 , "c":3 }', { remove: ['/c'] }, '{ "a":1 , "b":2 }'],
    ['{"a":1,"b":2,"c":3}', { remove: ['/a', '/b', '/c'] }, '{}'],
    ['{"a":1,"b":2,"c":3}', { remove: ['/a', '/c'] }, '{"b":2}'],
    ['{"a":[1,2,3]}', { remove: ['/a/1'] }, '{"a":[1,null,3]}'],
    ['{"a":1}', { mask: ['/a'], remove: ['/a'] }, '{}'],
    // Only what is named, with what it stands in; an element of an array keeps its place.
    [
      '{"id":1,"a":{"b":{"c":1,"d":2},"e":3},"f":{"g":{}}}',
      { only: ['/id', '/a/b/c'] },
      '{"id":1,"a":{"b":{"c":1}}}',
    ],
    ['{"a":[{"n":1,"x":2},{"x":3},4,{"n":5}]}', { only: ['/a/*/n'] }, '{"a":[{"n":1},null,null,{"n":5}]}'],
    ['{"a":{"b":[{"x":1}]},"c":{}}', { only: ['/**/n', '/c'] }, '{"c":{}}'],
    ['{"a":{"b":1,"s":2}}', { only: ['/a'], mask: ['/a/s'] }, '{"a":{"b":1,"s":null}}'],
    ['{"a":{"b":1},"c":2}', { only: ['/a/b'], mask: ['/a'] }, '{}'],
    ['{"a":1}', { only: [] }, '{}'],
    // The one way to name what has an empty name.
    ['{"a":{"":1,"b":2},"":3}', { mask: ['/a/*'] }, '{"a":{"":null,"b":null},"":3}'],
  ])('%s with %j', (json, lists, expected) => {
    expect(cut(json, lists)).toBe(expected);
  });

  test('the mask is JSON text of its own', () => {
    expect(cut('{"a":1,"b":2}', { mask: ['/a'] }, '"\\u0022"')).toBe('{"a":"\\u0022","b":2}');
  });

  test('gives back the very bytes where nothing is named', () => {
    const body = Buffer.from('{ "a" : [1 , {"b":2}] }');
    expect(cutter({ mask: ['/a/*/c', '/x'], remove: ['/**/y'] }).apply(body)).toBe(body);
    expect(cutter({ only: ['/a'] }).apply(body)).toBe(body);
  });

  test.each([
    '',
    '[]',
    '"a"',
    '{"a":1',
    '{"a":1}x',
    '{"a":1,}',
    '{"a":[1,]}',
    '{"a" 1}',
    '\ufeff{}',
    '{"a":tru}',
    '{a:1}',
  ])('refuses %j, whatever is named', (json) => {
    for (const lists of [{ mask: ['/z'] }, { only: ['/a'] }, { remove: ['/**/a/0'] }])
      expect(() => cut(json, lists)).toThrow(/not JSON/);
  });

  test('refuses what is nested too deeply for it, and does not run out of stack', () => {
    expect(cut(deep(190), { mask: ['/**/z'] })).toBe(deep(190));
    expect(() => cut(deep(100_000), { mask: ['/**/z'] })).toThrow(/nested deeper/);
    expect(() => cut(deep(100_000), { mask: ['/z'] })).toThrow(/nested deeper/);
  });
});

describe('a path', () => {
  test.each([
    ['data.name', '"/data/name"'],
    ['$.data.results[*].name', '"/data/results/*/name"'],
    ['/a//b', 'write "/a/b", or "/a/*/b" for each member there'],
    ['/a/', 'write "/a", or "/a/*" for each member there'],
    ['/', 'write "/*" for each member there'],
    ['/a/b*', '~2'],
    ['/a~3', 'after ~ stands'],
    ['', 'is all of the document'],
  ])('%j is refused with advice', (path, advice) => {
    expect(() => parsePath(path)).toThrow(advice);
  });
});

/**
 * Documents that are written with every freedom JSON has, and paths that often hit. The oracle parses, so that of members
 * with the same name it sees the last: names in an object differ here, and are looked at above.
 */
const NAMES = ['a', 'b', 'n', '0', '1', '', 'é', '*', '~/'];
const space = fc.constantFrom('', '', ' ', '\n', '\t ', '\r\n');
const spelled = (name: string): fc.Arbitrary<string> =>
  fc
    .boolean()
    .map((escaped) =>
      escaped
        ? `"${Array.from(name, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`
        : JSON.stringify(name),
    );
const scalar = fc.constantFrom(
  '1',
  '-0',
  '1.10',
  '1E400',
  'null',
  'true',
  '""',
  '"a\\"}]"',
  '"\\ud800"',
  '"n"',
  '12345678901234567890',
);
const { value: document } = fc.letrec<{ value: string; any: string; object: string; array: string }>(
  (tie) => ({
    value: tie('object'),
    any: fc.oneof({ maxDepth: 5 }, scalar, tie('object'), tie('array')),
    object: fc
      .uniqueArray(fc.constantFrom(...NAMES), { maxLength: 4 })
      .chain((members) =>
        fc.tuple(
          space,
          ...members.map((name) => fc.tuple(space, spelled(name), space, space, tie('any'), space)),
        ),
      )
      .map(([inner, ...members]) =>
        members.length === 0
          ? `{${inner}}`
          : `{${members.map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`).join(',')}}`,
      ),
    array: fc
      .array(fc.tuple(space, tie('any'), space), { maxLength: 4 })
      .map((items) => `[${items.map(([a, item, b]) => `${a}${item}${b}`).join(',')}]`),
  }),
);
const step = fc.constantFrom('*', '**', 'a', 'b', 'n', '0', '1', 'é', '~2', '~0~1');
const path = fc.array(step, { minLength: 1, maxLength: 4 }).map((steps) => `/${steps.join('/')}`);
const paths = fc.array(path, { maxLength: 3 });
const lists = fc.record({ only: fc.option(paths, { nil: undefined }), mask: paths, remove: paths });

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Whether a path names what stands at a place, by the definition. */
function names(steps: readonly string[], place: readonly string[]): boolean {
  const [first, ...rest] = steps;
  if (first === undefined) return place.length === 0;
  if (first === '**') return names(rest, place) || (place.length > 0 && names(steps, place.slice(1)));
  const [at, ...deeper] = place;
  if (at === undefined) return false;
  const name = first.replaceAll('~2', '*').replaceAll('~1', '/').replaceAll('~0', '~');
  return (first === '*' || name === at) && names(rest, deeper);
}

const GONE = Symbol('gone');

/** What is left of a value, by the definition; shares no code with the cutter, and works on values, not on text. */
function left(value: Json, given: Written, place: readonly string[], outer: boolean): Json | typeof GONE {
  const isNamed = (list: readonly string[] = []): boolean =>
    list.some((each) => names(each.slice(1).split('/'), place));
  const kept = outer || isNamed(given.only);
  if (place.length > 0 && isNamed(given.remove)) return GONE;
  if (place.length > 0 && isNamed(given.mask)) return kept ? 'MASK' : GONE;
  if (Array.isArray(value)) {
    const items = value.map((item, index) => left(item, given, [...place, String(index)], kept));
    if (!kept && items.every((item) => item === GONE)) return GONE;
    return items.map((item) => (item === GONE ? null : item));
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).flatMap(([name, member]) => {
      const found = left(member, given, [...place, name], kept);
      return found === GONE ? [] : [[name, found] as const];
    });
    if (!kept && members.length === 0 && place.length > 0) return GONE;
    return Object.fromEntries(members);
  }
  return kept ? value : GONE;
}

describe('for any document and any paths', () => {
  const options = { numRuns: runCount({ quick: 300, long: 1500 }) };

  test('what is left is what the definition says, and applying it again changes nothing', () => {
    fc.assert(
      fc.property(document, lists, (text, given) => {
        const made = cutter(given as Written, '"MASK"');
        const once = made.apply(Buffer.from(text));
        const parsed = JSON.parse(text) as Json;
        // A path that names the whole document leaves nothing to keep members in.
        const outer = given.only === undefined;
        expect(JSON.parse(once.toString())).toEqual(left(parsed, given as Written, [], outer));
        expect(made.apply(once).equals(once)).toBe(true);
      }),
      options,
    );
  });

  test('the bytes that are left stand in the original, in their order', () => {
    fc.assert(
      fc.property(document, lists, (text, given) => {
        const marked = cutter(given as Written, '"MASK"')
          .apply(Buffer.from(text))
          .toString();
        // Without what was put in, each piece is found behind the piece before it.
        let from = 0;
        for (const piece of marked.split(/"MASK"|null|,|[{}]/)) {
          const at = text.indexOf(piece, from);
          expect(at).toBeGreaterThanOrEqual(0);
          from = at + piece.length;
        }
      }),
      options,
    );
  });
});
