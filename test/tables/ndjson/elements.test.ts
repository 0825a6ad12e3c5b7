import { describe, expect, test } from 'vitest';
import { ElementScanner } from '../../../src/tables/ndjson/elements.ts';
import { chunked } from './support.ts';

interface Scanned {
  readonly found: string[];
  /** `code offset length` */
  readonly faults: string[];
}

async function elementsOf(
  text: string,
  sizes: readonly number[],
  longest = 1e6,
  lines = false,
): Promise<Scanned> {
  const bytes = Buffer.from(text);
  const found: string[] = [];
  const faults: string[] = [];
  const scanner = new ElementScanner({
    containers: ['meals', 'data'],
    longest,
    lines,
    onElement: (element, offset) => {
      expect(bytes.subarray(offset, offset + element.length).equals(element)).toBe(true);
      found.push(element.toString());
    },
    onFault: (code, _, offset, length) => faults.push(`${code} ${offset} ${length}`),
  });
  for await (const chunk of chunked(text, sizes)) scanner.push(chunk);
  scanner.end();
  return { found, faults };
}

describe('elements are found', () => {
  test.each([
    ['', [], []],
    [' \n', [], []],
    ['[]', [], []],
    ['{"meals":[]}', [], []],
    ['{"meals":[1,"a,]",true , {"a":[]}]}', ['1', '"a,]"', 'true', '{"a":[]}'], []],
    ['{"meals":[{"a":1},]}', ['{"a":1}'], ['not_json 18 0']],
    ['{"data":{"meals":[1]}}', ['{"data":{"meals":[1]}}'], []],
    ['{"x":"meals","y":{"meals":[1]}}', ['{"x":"meals","y":{"meals":[1]}}'], []],
    ['{"meals":{"a":[1]}}', ['{"meals":{"a":[1]}}'], []],
    ['{"a":1}\n{"a":\n\n{"b":2}', ['{"a":1}', '{"a":', '{"b":2}'], []],
    ['\ufeff{"a":1}{"a":"}{"}\n{"b":2}', ['{"a":1}', '{"a":"}{"}', '{"b":2}'], []],
    [
      '{"a":1}\n{"a":"}{"} {"b":2}{"c":\n1{"d":1}{}',
      ['{"a":1}', '{"a":"}{"}', '{"b":2}', '{"c":', '1', '{"d":1}', '{}'],
      [],
    ],
  ])('%j', async (text, found, faults) => {
    for (const sizes of [[1], [2, 3], [1000]])
      expect(await elementsOf(text, sizes)).toEqual({ found, faults });
  });

  test('unless they are too long, and then the rest is', async () => {
    const text = `{"meals":[{"a":1},{"b":"${'x'.repeat(100)}"},{"c":2}]}`;
    for (const sizes of [[1], [7], [1000]]) {
      expect(await elementsOf(text, sizes, 50)).toEqual({
        found: ['{"a":1}', '{"c":2}'],
        faults: ['too_long 18 108'],
      });
    }
  });
});

test.each([
  ['\ufeff{"a":1}\n', ['{"a":1}']],
  ['\ufeff{"a":1}{"b":2}\n{"c":3} {"d":4}', ['{"a":1}', '{"b":2}', '{"c":3}', '{"d":4}']],
])('of lines: %j', async (text, found) => {
  for (const sizes of [[1], [2, 3], [1000]])
    expect(await elementsOf(text, sizes, 1e6, true)).toEqual({ found, faults: [] });
});

describe('nothing is lost in silence: a fault covers all from the first byte of the element it struck', () => {
  test.each([
    ['{"meals":[{"a":1},{"b":"c', ['{"a":1}'], 'cut 18 7'],
    ['{"meals":[{"a":1},{"b":"c\\', ['{"a":1}'], 'cut 18 8'],
    ['{"meals":[{"a":1},12', ['{"a":1}'], 'cut 18 2'],
    ['{"meals":[{"a":1}', ['{"a":1}'], 'cut 17 0'],
    ['{"meals":[{"a":1} \t\r\n', ['{"a":1}'], 'cut 21 0'],
    ['{"meals":[{"a":1} 2 ', [], 'cut 10 10'],
    ['{"meals":[{"a":1}]', ['{"a":1}'], 'cut 18 0'],
    ['[{"a":1}', ['{"a":1}'], 'cut 8 0'],
    ['{"a":1', [], 'cut 0 6'],
    ['{"meals":[{"a":1},{"b":[}]}', ['{"a":1}'], 'broken 18 9'],
    ['{"meals":[{"a":1}}]}', [], 'broken 10 10'],
    ['<html>', [], 'broken 0 6'],
    ['{"meals":[{"a":1}]}x', ['{"a":1}'], 'broken 19 1'],
    ['{"meals":[{"a":1}],"total":]}', ['{"a":1}'], 'broken 27 2'],
  ])('%j', async (text, found, fault) => {
    for (const sizes of [[1], [2, 3], [1000]])
      expect(await elementsOf(text, sizes)).toEqual({ found, faults: [fault] });
  });
});
