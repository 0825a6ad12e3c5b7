import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';

const LONGEST_LINE = 120;
/** Words of a sentence that can be read once. */
const MOST_WORDS = 30;
/** What is generated, and what says what was decided when. */
const OTHERS = /^(?:docs\/reference\/(?!errors)|\.github\/decisions\/)/;

const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && !OTHERS.test(file));

test.each(pages)('%s has no padded tables', (file) => {
  const tables = readFileSync(join(ROOT, file), 'utf8').match(/^\|.*$/gm) ?? [];
  expect(tables.filter((line) => / {2,}\||\| {2,}|-{4,}/.test(line))).toEqual([]);
});

test.each(pages)(
  '%s has no line of more than 120 characters and no sentence of more than 30 words',
  (file) => {
    // Neither code nor tables.
    const text = readFileSync(join(ROOT, file), 'utf8')
      .replaceAll(/^ *```[^]*?^ *```$/gm, '')
      .replaceAll(/^\|.*$/gm, '')
      .replaceAll(/<!--[^]*?-->|<picture>[^]*?<\/picture>/g, '');
    const lines = text.split('\n').filter((line) => line.length > LONGEST_LINE && line.trim().includes(' '));
    const paragraphs = text.split(/\n\s*\n|\n(?= *(?:[-*]|\d+\.) )/);
    const sentences = paragraphs.flatMap((paragraph) =>
      paragraph
        .replaceAll(/\]\([^)]*\)/g, ']')
        .replaceAll(/`[^`]*`/g, 'code')
        .split(/[.:;?!](?=\s|$)/),
    );
    const long = sentences.filter((sentence) => sentence.split(/\s+/).filter(Boolean).length > MOST_WORDS);
    expect({ lines, long: long.map((sentence) => sentence.trim().slice(0, 100)) }).toEqual({
      lines: [],
      long: [],
    });
  },
);
