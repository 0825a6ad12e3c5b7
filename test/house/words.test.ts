import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';

const WRITTEN = /\.(?:ts|m?js|html|css|md|ya?ml|sh|service|txt)$/;
const HISTORY = '.github/decisions/';
const TABLE = '.github/CONTRIBUTING.md';

/** Where a word has another meaning than the one that is not used. */
const ALLOWED =
  /\b(?:dead\s+letters?|(?:lower\s+case|small)\s+letters|letters\s+(?:and\s+)?digits|a\s+letter\s+first|manifest\s+put\s+back)\b/g;

/** The words in code spans of the column "not" of CONTRIBUTING's table. */
const unused = Array.from(
  readFileSync(join(ROOT, TABLE), 'utf8').matchAll(/^\|[^|]+\|([^|]+)\|$/gm),
  ([, cell = '']) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, word = '']) => word),
).flat();

test('no name, comment or text has a word that CONTRIBUTING says is not used', () => {
  expect(unused.length).toBeGreaterThan(20);
  const search = new RegExp(`\\b(?:${unused.map((word) => word.replaceAll(' ', '\\s+')).join('|')})\\b`, 'g');
  const found = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => WRITTEN.test(file) && file !== TABLE && !file.startsWith(HISTORY))
    .flatMap((file) => {
      const text = wordsOf(readFileSync(join(ROOT, file), 'utf8'));
      return Array.from(text.matchAll(search), ({ 0: word, index }) => {
        const line = text.slice(0, index).split('\n').length;
        return `${file}:${line}: ${word.replaceAll(/\s+/g, ' ')}`;
      });
    });
  expect(found).toEqual([]);
});

/** A text as words, with its line breaks: `underWay`, `UNDER_WAY` and `under-way` are all `under way`. */
function wordsOf(text: string): string {
  return text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[^A-Za-z0-9\n]+/g, ' ')
    .toLowerCase()
    .replaceAll(ALLOWED, (allowed) => allowed.replaceAll(/[^\s]/g, '_'));
}
