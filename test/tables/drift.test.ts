import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { archive, archived } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { eventOf, printed } from './support.ts';

function events(from: number, count: number, type: string, dataOf: (n: number) => object): JournalEvent[] {
  return Array.from({ length: count }, (_, i) => eventOf(from + i, type, dataOf(from + i)));
}

const json = async (args: readonly string[]): Promise<object> => JSON.parse(await printed(args)) as object;

const READING = 'daily.data.reading.created';
const before = (n: number): object => ({
  id: `r${n}`,
  score: n,
  parts: [{ minutes: n }],
  ...(n % 2 === 0 ? { mood: 'm' } : {}),
});

/** What the service sends later: a field more, a type changed, one field and one of the parts gone. */
const after = (n: number): object => ({
  id: `r${n}`,
  score: n % 4 === 0 ? 'high' : n,
  parts: [{ seconds: n * 60 }],
  source: { battery: 1 },
});

async function readings(): Promise<{ path: string; file: string; out: string }> {
  const path = await archived(events(0, 40, READING, before));
  const file = join(await temporaryFolder(), 'tables.yaml');
  await printed(['schema', 'infer', path, '--out', file]);
  return { path, file, out: join(await temporaryFolder(), 'out') };
}

const exporting = (path: string, file: string, out: string): string[] => {
  return ['export', path, '--tables', file, '--table', 'reading', '--out', out];
};

const DRIFT = [
  {
    table: 'reading',
    rows: 40,
    new: [{ path: 'source', count: 40 }],
    changed: [{ path: 'score', type: 'integer', found: { text: 10 } }],
    gone: [{ column: 'mood', share: 0.5 }],
    more: 0,
  },
  {
    table: 'reading_parts',
    rows: 40,
    new: [{ path: 'seconds', count: 40 }],
    changed: [],
    gone: [{ column: 'minutes', share: 1 }],
    more: 0,
  },
];

test('an export says what has drifted since the table was learned', async () => {
  const { file, out } = await readings();
  const path = await archived(events(100, 40, READING, after));
  const args = exporting(path, file, out);
  expect(await json([...args, '--json'])).toMatchObject({ ok: true, drift: DRIFT });
  // And in a line for each table, for a reader.
  const stdout = await printed(exporting(path, file, `${out}-printed`));
  expect(stdout.split('\n').filter((line) => line.startsWith('drift'))).toEqual([
    'drift in reading, 40 rows: new fields, in extra: source (40); values of another type, in extra: ' +
      'score (10 text; the column is integer); no longer there: mood (was in 50 %)',
    'drift in reading_parts, 40 rows: new fields, in extra: seconds (40); no longer there: minutes (was in 100 %)',
  ]);
});

test('documents as they were when the table was learned have not drifted, nor have too few to tell', async () => {
  const { path, file, out } = await readings();
  const args = [...exporting(path, file, out), '--json'];
  expect(await json(args)).toMatchObject({ rows: { reading: 40 }, drift: [] });
  await archive(
    path,
    events(50, 9, READING, (n) => ({ id: `r${n}`, score: n })),
  );
  expect(await json(args)).toMatchObject({ rows: { reading: 9 }, drift: [] });
});

test('for a built-in table, earlier runs of the export tell what is gone', async () => {
  const path = await temporaryFolder();
  const out = join(await temporaryFolder(), 'out');
  const args = ['export', path, '--table', 'meals', '--out', out, '--json'];
  const MEAL = 'daily.data.meal.created';
  await archive(
    path,
    events(0, 30, MEAL, (n) => ({ id: `m${n}`, name: 'meal', provider_id: 'p' })),
  );
  expect(await json(args)).toMatchObject({ drift: [] });
  await archive(
    path,
    events(40, 30, MEAL, (n) => ({ id: `m${n}`, name: 7, rating: n })),
  );
  expect(await json(args)).toMatchObject({
    drift: [
      {
        table: 'meals',
        rows: 30,
        new: [{ path: 'rating', count: 30 }],
        changed: [{ path: 'name', type: 'text', found: { number: 30 } }],
        gone: [{ column: 'provider_id', share: 1 }],
      },
    ],
  });
});

const samples = (n: number): object => ({
  older: 1,
  data: [
    { timestamp: '2026-01-01T00:00:00Z', value: n, newer: 1 },
    { timestamp: '2026-01-01T00:01:00Z', value: n },
  ],
});

test('samples are counted once, those of a step that replaces another too', async () => {
  const path = await temporaryFolder();
  const out = join(await temporaryFolder(), 'out');
  await archive(path, events(0, 20, 'daily.data.steps.created', samples));
  const args = ['export', path, '--table', 'timeseries', '--out', out, '--json'];
  for (const more of [[], ['--again']])
    expect(await json([...args, ...more])).toMatchObject({
      rows: { timeseries: 40 },
      drift: [
        {
          table: 'timeseries',
          rows: 40,
          new: [
            { path: 'older', count: 20 },
            { path: 'newer', count: 20 },
          ],
        },
      ],
    });
});

test('a load says it too; a description that changes loads nothing again, a path does', async () => {
  const { file } = await readings();
  const path = await archived(events(100, 40, READING, after));
  const database = join(await temporaryFolder(), 'd.duckdb');
  const args = (tables: string): string[] => {
    return ['load', path, '--tables', tables, '--table', 'reading', '--to', `duckdb:${database}`, '--json'];
  };
  expect(await json(args(file))).toMatchObject({
    ok: true,
    rows: { reading: 40, reading_parts: 40 },
    drift: DRIFT,
  });
  const edited = join(await temporaryFolder(), 'tables.yaml');
  writeFileSync(edited, readFileSync(file, 'utf8').replaceAll('share: 1', 'share: 0.9, description: edited'));
  expect(await json(args(edited))).toMatchObject({ files: 0, replaced: 0, drift: [] });
  const elsewhere = join(await temporaryFolder(), 'tables.yaml');
  writeFileSync(elsewhere, readFileSync(file, 'utf8').replace('at: parts', 'at: sections'));
  expect(await json(args(elsewhere))).toMatchObject({
    files: 1,
    replaced: 1,
    rows: { reading: 40 },
  });
});

test('ndjson says it too', async () => {
  const { file } = await readings();
  const document = join(await temporaryFolder(), 'readings.json');
  writeFileSync(document, JSON.stringify(Array.from({ length: 40 }, (_, n) => after(n))));
  const out = join(await temporaryFolder(), 'rows');
  const [, ...args] = exporting(document, file, out);
  const { stdout, stderr } = await millrace(['ndjson', ...args, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ drift: DRIFT });
  expect(stderr).toContain('drift in reading_parts, 40 rows');
});

test('ever new fields are bounded in what is said', async () => {
  const { file, out } = await readings();
  const path = await archived(
    events(100, 30, READING, (n) =>
      Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f_${n}_${i}`, 1])),
    ),
  );
  const ended = await millrace([...exporting(path, file, out), '--json']);
  // Without an id they make no row.
  expect(ended.code).toBe(3);
  const { drift } = JSON.parse(ended.stdout) as { drift: { new: unknown[]; more: number }[] };
  expect(drift[0]!.new).toHaveLength(50);
  expect(drift[0]!.more).toBe(950);
});
