import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ndjsonCommand } from '../../../src/cli/ndjson.ts';
import type { LocatedReject } from '../../../src/tables/ndjson/shape-text.ts';
import { WorkFolder } from '../../../src/lib/work-folder.ts';
import { run } from '../../cli/run.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { openFiles } from '../../support/open-files.ts';
import { bulkDocument } from './documents.ts';
import { referenceRows } from './reference.ts';

interface Outcome {
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Ids of the meals that came through. */
  readonly ids: readonly string[];
  /** Names of the foods that came through. */
  readonly foods: readonly string[];
  readonly rejects: readonly LocatedReject[];
}

/** Runs the command on a file of this text, into a folder. */
async function shape(text: string | Buffer, ...args: string[]): Promise<Outcome> {
  const folder = await temporaryFolder();
  const file = join(folder, 'document.json');
  writeFileSync(file, text);
  const out = join(folder, 'tables');
  const ended = await run(ndjsonCommand, [file, '--table', 'meals', '--out', out, ...args]);
  expect(readdirSync(out).filter((name) => name.endsWith('.part'))).toEqual([]);
  return {
    ...ended,
    ids: rowsOf(join(out, 'meals.ndjson')).map(({ id }) => String(id)),
    foods: rowsOf(join(out, 'meal_items.ndjson')).map(({ name }) => String(name)),
    rejects: rowsOf(join(out, '_rejects.ndjson')) as unknown as LocatedReject[],
  };
}

function rowsOf(file: string): Record<string, unknown>[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const FIRST = '{"id":"first","name":"Crème brûlée, made up"}';
const LAST = '{"id":"last"}';
/** A bad meal between two good ones. */
const among = (bad: string): string => `{"meals":[${FIRST}, ${bad},${LAST}]}`;
const OFFSET = Buffer.byteLength(`{"meals":[${FIRST}, `);

describe('a bad meal is rejected with its place, and the others come through', () => {
  const deep = 200_000;
  test.each([
    ['without an id', '{"user_id":"u"}', 'no_identity', 'id is missing'],
    ['with an id of nothing', '{"id":""}', 'no_identity', 'id is missing'],
    ['with a number as id', '{"id":7}', 'wrong_type', 'id has to be a text'],
    ['that is a text', '"bad"', 'wrong_type', 'a row has to be an object'],
    ['that is null', 'null', 'wrong_type', 'a row has to be an object'],
    ['with NaN', '{"id":"bad","energy":{"value":NaN}}', 'not_json', "'N' was not expected, 30 bytes into"],
    ['with a comma too many', '{"id":"bad",}', 'not_json', "'}' was not expected, 12 bytes into"],
    ['with a number like 01', '{"id":"bad","source_id":01}', 'not_json', "'1' was not expected"],
    ['with a raw line break in a text', '{"id":"b\nad"}', 'not_json', '0x0a was not expected'],
    [
      'nested 200,000 levels deep',
      `{"id":"bad","x":${'['.repeat(deep)}${']'.repeat(deep)}}`,
      'too_deep',
      '200',
    ],
    ['with a text of 10 MB', `{"id":"bad","name":"${'x'.repeat(1e7)}"}`, 'too_long', '4194304 bytes'],
  ])('%s', async (_, bad, code, reason) => {
    const { exit, ids, rejects } = await shape(among(bad));
    expect(ids).toEqual(['first', 'last']);
    const place = { byte_offset: OFFSET, byte_length: Buffer.byteLength(bad) };
    expect(rejects).toEqual([
      { table: 'meals', code, reason: expect.stringContaining(reason) as string, ...place },
    ]);
    expect(exit).toBe(3);
  });

  test('that is not UTF-8', async () => {
    const [before = '', after = ''] = among('{"id":"?"}').split('?');
    const { exit, ids, rejects } = await shape(
      Buffer.concat([Buffer.from(before), Buffer.of(0xff), Buffer.from(after)]),
    );
    expect({ exit, ids }).toEqual({ exit: 3, ids: ['first', 'last'] });
    expect(rejects).toMatchObject([{ code: 'not_utf8', byte_offset: OFFSET }]);
  });

  test('and nothing of it is in the reason: payloads are health data', async () => {
    const { stderr, rejects } = await shape(among('{"id":"secret","user_id":"secret",NaN}'));
    expect(`${stderr}${JSON.stringify(rejects)}`).not.toContain('secret');
  });
});

describe('what is wrong inside a meal costs no more than it must', () => {
  test('a food that is no object is rejected alone', async () => {
    const meal = '{"id":"a","data":{"Tea":{},"Cake":[1],"Nothing":null}}';
    const { exit, ids, foods, rejects } = await shape(`[${meal}]`);
    expect({ exit, ids, foods }).toEqual({ exit: 3, ids: ['a'], foods: ['Tea', 'Nothing'] });
    const reason = 'item 1 of data has to be an object';
    const place = { byte_offset: 1, byte_length: meal.length };
    expect(rejects).toEqual([{ table: 'meal_items', code: 'wrong_type', reason, ...place }]);
  });

  test('a value of another type than its column is kept in extra', async () => {
    const { exit, ids, stderr } = await shape(among('{"id":"odd","name":7,"timestamp":"noon"}'));
    expect({ exit, ids }).toEqual({ exit: 0, ids: ['first', 'odd', 'last'] });
    expect(stderr).toContain('meals: a value of name is not valid for its column (text); it is in extra');
    expect(stderr).toContain(
      'meals: a value of timestamp is not valid for its column (timestamp); it is in extra',
    );
    expect(stderr).not.toContain('has no column');
  });

  test.each([
    ['an array as source', '{"id":"odd","source":[1]}', 'source (1 array; read in another shape)'],
    ['a text as data', '{"id":"odd","data":"Tea"}', 'data (1 text; read in another shape)'],
    ['a number as fats', '{"id":"odd","macros":{"fats":7}}', 'macros.fats (1 number; read in another shape)'],
  ])('%s is kept in extra, and said', async (_, meal, drift) => {
    const { exit, ids, stderr } = await shape(among(meal));
    expect({ exit, ids }).toEqual({ exit: 0, ids: ['first', 'odd', 'last'] });
    expect(stderr).toContain(`values of another type, in extra: ${drift}`);
  });

  test('a text of 10 MB comes through when it may', async () => {
    const long = `{"id":"long","name":"${'x'.repeat(1e7)}"}`;
    expect(await shape(among(long), '--longest', '16MiB')).toMatchObject({
      exit: 0,
      ids: ['first', 'long', 'last'],
      rejects: [],
    });
  });
});

describe('a broken document gives what stands before the break', () => {
  const good = `{"meals":[${FIRST},${LAST}`;
  test.each([
    ['cut in a meal', `${good},`, '{"id":"cu', 'cut'],
    ['cut between meals', good, '', 'cut'],
    ['with mismatched bracket', `${good},`, '{"id":[}]}]}', 'broken'],
    ['to which a proxy added a page', `${good}]}`, '<html>', 'broken'],
  ])('%s', async (_, before, lost, code) => {
    const { exit, ids, rejects } = await shape(before + lost);
    expect({ exit, ids }).toEqual({ exit: 3, ids: ['first', 'last'] });
    const place = { byte_offset: Buffer.byteLength(before), byte_length: lost.length };
    expect(rejects).toMatchObject([{ table: 'meals', code, ...place }]);
  });

  test('cut gzip', async () => {
    const meals = Array.from({ length: 20_000 }, (_, n) => `{"id":"made-up-${n}"}`);
    const packed = gzipSync(`{"meals":[${meals.join(',')}]}`);
    const { exit, ids, rejects } = await shape(packed.subarray(0, packed.length / 2));
    expect(exit).toBe(3);
    expect(ids.length).toBeGreaterThan(1000);
    expect(ids).toEqual(meals.slice(0, ids.length).map((_, n) => `made-up-${n}`));
    expect(rejects).toMatchObject([{ code: 'cut', reason: expect.stringContaining('compressed') as string }]);
  });

  test('a line of NDJSON is lost alone', async () => {
    const { exit, ids, rejects } = await shape(`${FIRST}\n{"id":"a"\n\n${LAST}\n`);
    expect({ exit, ids }).toEqual({ exit: 3, ids: ['first', 'last'] });
    const byte_offset = Buffer.byteLength(FIRST) + 1;
    expect(rejects).toMatchObject([{ code: 'not_json', byte_offset, byte_length: 9 }]);
  });

  test('with --at', async () => {
    const { exit, ids, rejects } = await shape(
      `{"a":{"meals":[${FIRST},${LAST},{"id":NaN}]}}`,
      '--at',
      'a.meals',
    );
    expect({ exit, ids }).toEqual({ exit: 3, ids: ['first', 'last'] });
    expect(rejects).toMatchObject([
      { code: 'broken', reason: expect.stringContaining('not JSON') as string },
    ]);
  });
});

describe('the command line', () => {
  test('writes the bytes of the plain way, from a process of its own', async () => {
    const documents = fc.sample(bulkDocument, { numRuns: 40, seed: 7 });
    const text = documents.map((document) => document.text).join('\n');
    const folder = await temporaryFolder();
    const file = join(folder, 'documents.json.gz');
    writeFileSync(file, gzipSync(text));
    const { code } = await millrace(['ndjson', file, '--table', 'meals', '--out', folder]);
    const { rows, rejects } = await referenceRows(text);
    const read = (table: string): string => untimed(readFileSync(join(folder, `${table}.ndjson`), 'utf8'));
    expect(read('meals')).toBe(rows.meals);
    expect(read('meal_items')).toBe(rows.meal_items);
    expect(
      rowsOf(join(folder, '_rejects.ndjson')).map(
        ({ table, code: why }) => `${String(table)} ${String(why)}`,
      ),
    ).toEqual(rejects);
    expect(code).toBe(rejects.length > 0 ? 3 : 0);
  });

  test('writes rows to stdout and rejects to stderr without a folder', async () => {
    const file = join(await temporaryFolder(), 'document.json');
    writeFileSync(file, among('{"id":7}'));
    const { stdout, stderr, exit } = await run(ndjsonCommand, [file, '--table', 'meals']);
    expect(untimed(stdout)).toBe(`${FIRST}\n${LAST}\n`);
    expect(stderr).toContain(`"code":"wrong_type","reason":"id has to be a text","byte_offset":${OFFSET}`);
    expect(exit).toBe(3);
  });

  test('ends with a line of JSON when asked', async () => {
    const { stdout } = await shape(among('{"id":7}'), '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      elements: 3,
      rows: { meals: 2, meal_items: 0 },
      rejects: 1,
      files: [
        expect.stringMatching(/meals\.ndjson$/) as string,
        expect.stringMatching(/meal_items\.ndjson$/) as string,
        expect.stringMatching(/_rejects\.ndjson$/) as string,
      ],
    });
  });

  test.each([
    [['--table', 'meal'], 'the tables are'],
    [['--table', 'meals', '--json'], '--json needs a folder'],
    [['--table', 'meals', '--set', 'user_id'], 'write it as column=value'],
    [['--table', 'meals', '--longest', 'much'], 'much'],
    [['--table', 'meals'], 'no-such-file'],
  ])('refuses %j', async (args, message) => {
    await expect(run(ndjsonCommand, ['./no-such-file.json', ...args])).rejects.toThrow(message);
  });
});

/** Rows without the time of the run, which each of them ends with: the same one in all. */
function untimed(rows: string): string {
  const [, time = ''] = /(,"_loaded_at":"[^"]+")\}\n/.exec(rows) ?? [];
  expect(rows.split(time)).toHaveLength(rows.split('\n').length);
  return rows.replaceAll(time, '');
}

test('a document that was opened and never read is closed', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'document.json');
  writeFileSync(file, among('{}'));
  const out = join(folder, 'tables');
  const owner = await WorkFolder.take(out);
  await expect(run(ndjsonCommand, [file, '--table', 'meals', '--out', out])).rejects.toThrow('written by');
  owner.release();
  expect(openFiles()).not.toContain(file);
});
