import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { ROOT } from '../support/millrace.ts';
import { loadedByCheck, passedByAMeal, passedByAnEvent, type Script } from './passed.ts';

interface Source {
  /** Below the repository. */
  readonly file: string;
  readonly text: string;
}

const SMALL = 40;

/** How large the program is, in figures that a reader meets. */
export async function figures(folder: string): Promise<Record<string, number>> {
  const src = sourcesOf('src');
  const passed = await passedByAnEvent(await mkdtemp(join(folder, 'event-')));
  const meal = await passedByAMeal(await mkdtemp(join(folder, 'meal-')));
  const checked = await loadedByCheck(await mkdtemp(join(folder, 'check-')));
  return {
    'src: entries at the top': readdirSync(join(ROOT, 'src')).length,
    'src: lines': sum(src.map(linesOf)),
    'src: lines of code': sum(src.map(codeOf)),
    'src: files': src.length,
    'src: files of fewer than 40 lines with one importer': smallOnes(src).length,
    'test: lines': sum(sourcesOf('test').map(linesOf)),
    'an event: functions': new Set(passed.flatMap(({ file, ran }) => ran.map((name) => `${file} ${name}`)))
      .size,
    'an event: files': filesOf(passed).size,
    'an event: rooms': roomsOf(passed).size,
    'a meal: files': filesOf(meal).size,
    'a meal: rooms': roomsOf(meal).size,
    'check: files': filesOf(checked).size,
  };
}

function filesOf(scripts: readonly Script[]): Set<string> {
  return new Set(scripts.map(({ file }) => file));
}

function roomsOf(scripts: readonly Script[]): Set<string | undefined> {
  return new Set(scripts.map(({ file }) => file.split('/')[0]));
}

function sourcesOf(folder: string): Source[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), 'utf8') }));
}

function linesOf({ text }: Source): number {
  return text.split('\n').length - 1;
}

/** Lines on which something other than a comment stands. */
function codeOf({ file, text }: Source): number {
  let code = text;
  for (const { start, end } of parseSync(file, text).comments)
    code = code.slice(0, start) + text.slice(start, end).replaceAll(/[^\n]/g, ' ') + code.slice(end);
  return code.split('\n').filter((line) => line.trim() !== '').length;
}

/** Files of fewer than 40 lines that exactly one file imports. */
function smallOnes(src: readonly Source[]): string[] {
  const importers = new Map<string, Set<string>>();
  for (const { file, text } of src)
    for (const [, from = ''] of text.matchAll(/\bfrom '(\.[^']+)'|\bimport\('(\.[^']+)'\)/g)) {
      const imported = relative(ROOT, resolve(ROOT, dirname(file), from));
      importers.set(imported, (importers.get(imported) ?? new Set()).add(file));
    }
  return src
    .filter((source) => linesOf(source) < SMALL && importers.get(source.file)?.size === 1)
    .map(({ file }) => file);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0);
}
