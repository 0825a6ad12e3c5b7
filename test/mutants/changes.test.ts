import { expect, test } from 'vitest';
import { changesOf } from './changes.ts';

const all = (source: string): string[] =>
  changesOf(source).map(({ start, end, text }) => source.slice(0, start) + text + source.slice(end));

test('each operator, truth, call and return is changed, one at a time', () => {
  expect(all('a === b;')).toEqual(['a !== b;']);
  expect(all('a <= b;')).toEqual(['a < b;']);
  expect(all('a && b;')).toEqual(['a || b;']);
  expect(all('n + 1;')).toEqual(['n - 1;']);
  expect(all('x = true as boolean;')).toEqual(['x = false as boolean;']);
  expect(all('await a.b();')).toEqual([';']);
  expect(all('function f() { return a; }')).toEqual(['function f() { return undefined; }']);
});

test('nothing is changed in a comment, a text, an import or a type', () => {
  const source = `import a from 'a < b'; // a === b\ntype T = true; let t: Array<true> = ['a && b', text + 'x'];`;
  expect(all(source)).toEqual([]);
});
