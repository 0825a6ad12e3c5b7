import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Scanner, type Verdict } from '../../../src/receive/validate/scan.ts';
import { runCount } from '../../support/run-count.ts';

const NAMES = ['event_type', 'a', 'é"\\', '__proto__'];
const DEPTH = 4;

let parsedTexts = 0;
/**
 * What JSON.parse makes of the text of an object that has members, with one more in front of them that no object had.
 * V8 13.6 takes the escaped key "\\u0061" for the key "\\" where any object of so many members, a literal in a
 * library too, had that after the same keys: after a new key there is none.
 */
function objectOf(text: string): object {
  parsedTexts += 1;
  return JSON.parse(text.replace('{', `{"key ${parsedTexts} of this test":0,`));
}

/** What JSON.parse says of a text: the verdict, and the members that are looked for. */
function parsed(text: string): { verdict: Verdict; members: unknown[] } {
  const nothing = NAMES.map(() => undefined);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { verdict: 'not_json', members: nothing };
  }
  if (depthOf(text) > DEPTH) return { verdict: 'too_deep', members: nothing };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { verdict: 'not_object', members: nothing };
  const object = Object.keys(value).length > 0 ? objectOf(text) : value;
  const members = NAMES.map((name) => (Object.hasOwn(object, name) ? Reflect.get(object, name) : undefined));
  return { verdict: 'object', members };
}

function scanned(text: string, quick: boolean): { verdict: Verdict; members: unknown[] } {
  const scanner = new Scanner(NAMES, DEPTH, quick);
  const verdict = scanner.scan(Buffer.from(text));
  return { verdict, members: NAMES.map((name) => (verdict === 'object' ? scanner.value(name) : undefined)) };
}

/** Of valid JSON, members that are repeated included. */
function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [bracket] of json.replace(/"(?:[^"\\]|\\.)*"/g, '').matchAll(/[[\]{}]/g)) {
    depth += '[{'.includes(bracket) ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

const anyText = fc
  .array(
    fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('"', '\\', '/', '\n', '\u2028', '\ud800', '𝄞')),
  )
  .map((parts) => parts.join(''));
const anySpace = fc.constantFrom('', '', '', ' ', '\n\t', '\r ');
const anyScalar = fc.oneof(
  fc.double().map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '-0',
    '0.10',
    '1E400',
    '1e-7',
    '12E+05',
    'true',
    'false',
    'null',
    '"\\u00e9\\ud834\\udd1e\\/"',
  ),
  anyText.map((text) => JSON.stringify(text)),
);
const anyKey = fc.oneof(
  fc.constantFrom(...NAMES).map((name) => JSON.stringify(name)),
  fc.constantFrom('"\\u0061"', '"\\u00E9\\"\\\\"', '"event\\u005ftype"', '"_\\u005fproto__"', '"b"', '""'),
  anyText.map((text) => JSON.stringify(text)),
);
/** JSON as JSON.stringify does not write it: with spaces, repeated members, other spellings. */
const anyJson = fc.letrec<{ value: string }>((tie) => {
  const list = (item: fc.Arbitrary<string>, [open, close]: [string, string]): fc.Arbitrary<string> =>
    fc
      .tuple(fc.array(item, { maxLength: 4 }), anySpace, anySpace)
      .map(([items, before, after]) => `${open}${before}${items.join(`${after},${before}`)}${after}${close}`);
  const member = fc
    .tuple(anyKey, anySpace, anySpace, tie('value'))
    .map(([key, before, after, value]) => `${key}${before}:${after}${value}`);
  return {
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      anyScalar,
      list(tie('value'), ['[', ']']),
      list(member, ['{', '}']),
    ),
  };
}).value;

/** The same with a few characters taken out, put in or exchanged. */
const anyBroken = fc
  .tuple(
    anyJson,
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat(1),
        fc.constantFrom('', ...'{}[]",:\\ \n\u0000\u001f0-+.eEtfnu1a\u00a0\ufeff'.split('')),
      ),
      { maxLength: 3 },
    ),
  )
  .map(([json, changes]) =>
    changes.reduce((text, [where, length, char]) => {
      const at = where % (text.length + 1);
      return text.slice(0, at) + char + text.slice(at + length);
    }, json),
  );

describe.each([
  ['in WebAssembly', true],
  ['in JavaScript', false],
])('a scan %s is of the same opinion as JSON.parse', (_, quick) => {
  test('about JSON in any spelling, and its members', () => {
    fc.assert(
      fc.property(anySpace, anyJson, anySpace, (before, json, after) => {
        const text = `${before}${json}${after}`;
        expect(scanned(text, quick)).toEqual(parsed(text));
      }),
      { numRuns: runCount({ quick: 1000, long: 5000 }) },
    );
  });

  test('about text that is JSON no more, or still', () => {
    let broken = 0;
    fc.assert(
      fc.property(anyBroken, (text) => {
        // A lone surrogate that was cut in two is another text as UTF-8.
        const seen = Buffer.from(text).toString();
        const expected = parsed(seen);
        const { verdict, members } = scanned(seen, quick);
        // Deeper text is given up before what is wrong behind it is seen.
        if (expected.verdict !== 'not_json' || verdict !== 'too_deep')
          expect({ verdict, members }).toEqual(expected);
        if (verdict === 'not_json') broken += 1;
      }),
      { numRuns: runCount({ quick: 10_000, long: 50_000 }) },
    );
    expect(broken).toBeGreaterThan(1000);
  });

  test('but for keys that V8 mistakes for others it has seen', () => {
    JSON.parse('{"x":1,"\\\\":1}');
    const text = '{"x":1,"\\u0061":2}';
    expect(parsed(text).members[NAMES.indexOf('a')]).toBe(2);
    expect(scanned(text, quick).members[NAMES.indexOf('a')]).toBe(2);
  });

  test.each([
    '',
    ' ',
    '{',
    '[',
    '"',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    '[1,]',
    '[,1]',
    '{,}',
    '{"a" 1}',
    '{a:1}',
    "{'a':1}",
    '01',
    '-',
    '+1',
    '1.',
    '.5',
    '1e',
    '1e+',
    '-01',
    '0x1',
    'NaN',
    'Infinity',
    'tru',
    'truex',
    'nul',
    '"\t"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\',
    '1 2',
    '{}{}',
    '[]]',
    '{"a":1}}',
    '\ufeff{}',
    '\u00a0{}',
    '\f{}',
    '/**/{}',
    '[1}',
    '{"a":1]',
    '{"a":[}',
  ])('about %j', (text) => {
    expect(scanned(text, quick)).toEqual(parsed(text));
    expect(parsed(text).verdict).toBe('not_json');
  });
});
