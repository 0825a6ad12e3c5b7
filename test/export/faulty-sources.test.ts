import { cpSync, mkdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { rowsIn } from '../tables/support.ts';
import { duckdb, exported, exporting, filesBelow, mealEvent, mealEvents, mealOf } from './support.ts';

const meals = mealEvents(1, 30);
const ids = (of: (n: number) => boolean = () => true): string[] =>
  meals
    .map((_, n) => n + 1)
    .filter(of)
    .map((n) => mealOf(n).id);

/** An archive of three files, a day each, and where exports of it go. */
async function begun(options: object = {}) {
  const made = await exporting(meals, { table: 'meals', format: 'ndjson' }, options);
  const last = filesBelow(made.path, /^dt=.*\.ndjson(\.gz)?$/).at(-1) ?? '';
  return { ...made, last: join(made.path, last) };
}

/** Ids of the meals that an export in NDJSON holds, each as often as it does. */
function mealsIn(out: string): string[] {
  return (rowsIn(out)['meals'] ?? []).map(({ id }) => String(id)).sort();
}

const steps = (out: string): number =>
  readFileSync(join(out, '_export.jsonl'), 'utf8').trim().split('\n').length - 1;

describe('a source that cannot be read whole', () => {
  it.each(['gzip', 'none'] as const)('short: is read again until it is whole (%s)', async (compress) => {
    const { out, last, run } = await begun({ compress });
    const whole = readFileSync(last);
    // Where it is not compressed, it ends with a whole line.
    truncateSync(last, compress === 'gzip' ? whole.length - 100 : whole.lastIndexOf(10, -2) + 1);
    expect((await run()).problems).toBe(1);
    const made = steps(out);
    const again = await run();
    expect([again.problems, again.messages.some((line) => line.startsWith('dt=2026-11-23'))]).toEqual([
      1,
      true,
    ]);
    // Nothing has changed, so nothing is replaced, and consumers have nothing to load again.
    expect(steps(out)).toBe(made);
    writeFileSync(last, whole);
    expect(await run()).toMatchObject({ problems: 0, complete: true });
    expect(mealsIn(out)).toEqual(ids());
    expect(await run()).toMatchObject({ steps: 0, before: 3, problems: 0 });
  });

  it('damaged lines: the same; and new events are exported, once', async () => {
    const { out, last, run, grow } = await begun();
    const whole = readFileSync(last);
    const lines = gunzipSync(whole).toString().split('\n');
    lines[3] = (lines[3] ?? '').replace('{', '[');
    writeFileSync(last, gzipSync(lines.join('\n')));
    expect((await run()).problems).toBeGreaterThan(0);
    expect((await grow([mealEvent(31)])).problems).toBeGreaterThan(0);
    expect(mealsIn(out)).toHaveLength(30);
    writeFileSync(last, whole);
    expect((await run()).problems).toBe(0);
    expect(mealsIn(out)).toEqual([...ids(), mealOf(31).id]);
  });

  it.each(['parquet', 'delta'] as const)('%s: its rows are replaced by all of them', async (format) => {
    const { out, last, run } = await begun();
    const whole = readFileSync(last);
    truncateSync(last, whole.length - 100);
    expect((await run({ format })).problems).toBe(1);
    writeFileSync(last, whole);
    expect((await run({ format })).problems).toBe(0);
    const sql = await duckdb();
    const rows = await sql(`SELECT id FROM read_parquet('${out}/meals/**/part-*.parquet') ORDER BY id`);
    expect(rows.flat()).toEqual(ids());
  });
});

describe('a source that is missing', () => {
  it('keeps its rows, is named, and is an exit code of its own', async () => {
    const { path, out, last, run } = await begun();
    await run();
    renameSync(last, join(out, 'elsewhere'));
    const args = ['export', path, '--out', out, '--table', 'meals', '--format', 'ndjson'];
    const { code, stdout, stderr } = await millrace(args);
    expect(code, stderr).toBe(3);
    expect(stderr).toContain(`${last.slice(path.length + 1)}: in the manifest, but missing: its rows stay`);
    expect(stdout).toContain('1 files of an archive are missing: their rows stay');
    expect(mealsIn(out)).toEqual(ids());
    expect(await run({ again: true })).toMatchObject({ missing: 1 });
    expect(mealsIn(out)).toEqual(ids());
    renameSync(join(out, 'elsewhere'), last);
    expect(await run()).toMatchObject({ missing: 0, steps: 0 });
  });

  it.each(['ndjson', 'delta'] as const)('a folder that is empty empties nothing (%s)', async (format) => {
    const { path, out, run } = await begun();
    await run({ format });
    const all = (): string[] => filesBelow(join(out, 'meals'), /./);
    const before = all();
    renameSync(path, `${path}.away`);
    mkdirSync(path);
    expect(await run({ format })).toMatchObject({ missing: 3, replaced: 0 });
    expect(all()).toEqual(before);
  });

  it('was never exported: is reported too', async () => {
    const { out, last, run } = await begun();
    renameSync(last, join(out, 'elsewhere'));
    expect(await run()).toMatchObject({ missing: 1, rows: { meals: 20 } });
  });
});

it('a file that is there twice counts once, and an interrupted --again leaves nothing twice', async () => {
  const { path, out, run } = await begun();
  const copy = await temporaryFolder();
  cpSync(path, copy, { recursive: true });
  await exported([path, copy, path], out, { table: 'meals', format: 'ndjson' });
  expect(mealsIn(out)).toEqual(ids());
  const abort = new AbortController();
  const onProgress = ({ done }: { done: number }): void => void (done === 2 && abort.abort());
  await run({ again: true, stepBytes: 1, signal: abort.signal, onProgress });
  expect(await run({ stepBytes: 1 })).toMatchObject({ complete: true });
  expect(mealsIn(out)).toEqual(ids());
});
