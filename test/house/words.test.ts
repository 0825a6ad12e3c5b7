import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';

const WRITTEN = /\.(?:ts|m?js|html|css|md|ya?ml|sh|service|txt)$/;
const TABLE = '.github/CONTRIBUTING.md';
/** What was decided when, and this list. */
const OTHERS = /^\.github\/(?:decisions\/|CONTRIBUTING)|^test\/house\/words/;

/** Characters, and names that are an interface: error codes, stored keys, tables, log fields, properties of CSS. */
const ALLOWED = [
  /dead[-_\s*/#]*letters?/gi,
  /(?:lower-case|small|only)\s+letters|\bletters(?:,|\s+and)\s+digits|\ba\s+letter\s+first|letter-?[sS]pacing/g,
  /['`]unfit['`]|\bunfit:|\b(?:heirs|letters?)\??:|eras, heirs, left|successors: heirs|dropped[-_]letters|[mM]anifest[pP]ut[bB]ack/g,
];

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
    .filter((file) => WRITTEN.test(file) && !OTHERS.test(file))
    .flatMap((file) => {
      const text = wordsOf(readFileSync(join(ROOT, file), 'utf8'));
      return Array.from(text.matchAll(search), ({ 0: word, index }) => {
        const line = text.slice(0, index).split('\n').length;
        return `${file}:${line}: ${word.replaceAll(/\s+/g, ' ')}`;
      });
    });
  expect(found).toEqual([]);
});

/** A text as words, with its line breaks. A name in camel case, with underscores or with hyphens is several words. */
function wordsOf(text: string): string {
  return ALLOWED.reduce((rest, allowed) => rest.replaceAll(allowed, blank), text)
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[^A-Za-z0-9\n]+/g, ' ')
    .toLowerCase();
}

/** Keeps the line breaks. */
function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, '_');
}
