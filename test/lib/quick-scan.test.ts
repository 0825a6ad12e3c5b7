import { expect, test } from 'vitest';
import { QuickScan } from '../../src/lib/quick-scan.ts';
import { Scanner } from '../../src/receive/validate/scan.ts';

const NAMES = ['event_type', 'a'];

function newQuick(names: readonly string[] = NAMES, maxDepth = 4): QuickScan {
  const quick = QuickScan.of(names, maxDepth);
  if (quick === null) throw new Error('this engine has no SIMD');
  return quick;
}

/** What is between the spans; null for a text that is not taken. */
function taken(text: string, quick = newQuick(), names = NAMES): (string | undefined)[] | null {
  const json = Buffer.from(text);
  const spans = new Int32Array(names.length * 2).fill(7);
  if (!quick.scan(json, spans)) return null;
  return names.map((_, i) =>
    (spans[2 * i] as number) < 0 ? undefined : json.toString('utf8', spans[2 * i], spans[2 * i + 1]),
  );
}

test.each([
  ['{}', [undefined, undefined]],
  [' { } ', [undefined, undefined]],
  ['{"a":1}', [undefined, '1']],
  ['{"a":{"a":2},"event_type":"x.y"}\n', ['"x.y"', '{"a":2}']],
  ['{"a":1,"a":[true,false,null,-0.5e+7,{}]}', [undefined, '[true,false,null,-0.5e+7,{}]']],
  ['{"b":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD834","event_type":"é"}', ['"é"', undefined]],
  ['{"aa":1,"":2,"event_typ":3}', [undefined, undefined]],
])('%s is taken', (text, members) => {
  expect(taken(text)).toEqual(members);
});

test.each(['[]', '1', '{"\\u0061":1}', '{"a":[[[[1]]]]}', '{"a":1} x', '{"a":1}\0', ''])(
  '%j is left to others',
  (text) => {
    expect(taken(text)).toBeNull();
  },
);

test.each([
  ['{"a":[1.5,-0,true,null,{}],"b":"\\n\\"\\\\é"}', true],
  [`{"a":${'1'.repeat(300)}}`, true],
  [`{"a":${'1'.repeat(301)}}`, false],
  ['{"a":1e5}', false],
  ['{"a":"\\u0041"}', false],
  ['{"a":"0123456789abcdef\\/"}', false],
  ['{"a": 1}', false],
  ['{"a":[1,\t2]}', false],
  ['{}\n', false],
])('%s is canonical: %s', (text, isCanonical) => {
  const quick = newQuick();
  // What was said of the text before does not count.
  for (const before of ['{"a": 1e5}', '{}']) {
    taken(before, quick);
    expect([taken(text, quick) !== null, quick.isCanonical]).toEqual([true, isCanonical]);
  }
});

test.each([
  ['{}', false],
  ['{"a":{"b":1,"b":2},"event_type":[]}', false],
  ['{"a":1,"b":2}', true],
  ['{"b":{}}', true],
  ['{"a":{},"event_type":"x","a":1}', true],
])('%s has members that are not searched, or one twice: %s', (text, hasOthers) => {
  const quick = newQuick();
  taken('{"a":1}', quick);
  expect([taken(text, quick) !== null, quick.hadOthers]).toEqual([true, hasOthers]);
});

test('levels are counted as they are in JavaScript', () => {
  for (let maxDepth = 0; maxDepth < 5; maxDepth += 1)
    for (let depth = 1; depth < 6; depth += 1) {
      const text = `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`.replace('{"a":}', '{}');
      const verdict = new Scanner(NAMES, maxDepth, false).scan(Buffer.from(text));
      expect([text, taken(text, newQuick(NAMES, maxDepth)) !== null]).toEqual([text, verdict === 'object']);
    }
});

test('wherever something stands in the 16 bytes that are looked at together', () => {
  const rest = ',"a":"0\\n1","n":[12.5,true,false,null,"","0123456789abcdef0123456789abcdef"]}';
  for (let padding = 0; padding < 40; padding += 1)
    for (const member of [`"p":"${'x'.repeat(padding)}"`, `"p":{"${'x'.repeat(padding)}":0,"\\"":1}`]) {
      const text = `{${member}${rest}`;
      expect([text, taken(text)]).toEqual([text, [undefined, '"0\\n1"']]);
      // What is left of the text before stands behind each of these.
      for (let length = 0; length < text.length; length += 1) expect(taken(text.slice(0, length))).toBeNull();
      for (let at = 0; at < text.length; at += 1) {
        const wrong = `${text.slice(0, at)}\u0001${text.slice(at + 1)}`;
        expect([wrong, taken(wrong)]).toEqual([wrong, null]);
      }
    }
});

test('what is left of a text is not read as the end of the next one', () => {
  expect(taken(`{}${' '.repeat(100)}`)).toEqual([undefined, undefined]);
  expect(taken('{} ')).toEqual([undefined, undefined]);
});

test('two that look for other names take turns', () => {
  const [one, other] = [newQuick(), newQuick(['b', 'c', 'a'])];
  const text = '{"a":1,"b":2,"c":3}';
  for (let turn = 0; turn < 2; turn += 1) {
    expect(taken(text, one)).toEqual([undefined, '1']);
    expect(taken(text, other, ['b', 'c', 'a'])).toEqual(['2', '3', '1']);
  }
});

test('a longer text than there is room for is left to others, who take it', () => {
  const text = `{"p":"${'x'.repeat(1024 * 1024)}","a":7}`;
  expect(taken(text)).toBeNull();
  const scanner = new Scanner(NAMES, 4);
  expect([scanner.scan(Buffer.from(text)), scanner.value('a')]).toEqual(['object', 7]);
});

test('so are more or longer names', () => {
  expect(QuickScan.of(['x'.repeat(20_000)], 4)).toBeNull();
  const many = Array.from({ length: 65 }, (_, i) => `name ${i}`);
  expect(QuickScan.of(many, 4)).toBeNull();
});
