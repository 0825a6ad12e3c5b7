import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Segments } from '../../../src/history/backfill/segments.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { standIn } from './stand-in.ts';
import { rowIds, tasksIn } from './support.ts';

const RANGE = ['--all-users', '--since', '2026-01-01', '--until', '2026-01-31'];

/** A backfill of three users that ended at the third. */
async function interrupted() {
  const folder = await temporaryFolder();
  const service = await standIn({ users: 3, meals: 20 });
  const [first = '', second = '', third = ''] = service.users;
  const config = writeConfig(folder);
  const out = join(folder, 'history');
  const run = (...args: readonly string[]) =>
    millrace(['backfill', '--out', out, '--config', config, '--concurrency', '1', ...args], {
      env: service.env,
    });
  service.instead = (_, user) => (user === third ? 401 : null);
  expect((await run(...RANGE)).code).toBe(1);
  service.instead = () => null;
  const work = join(out, '_backfill');
  const [name = '', ...others] = readdirSync(work, { recursive: true, encoding: 'utf8' }).filter((one) =>
    one.endsWith('.ndjson'),
  );
  expect([others, tasksIn(work)]).toEqual([[], 2]);
  const erase = (user: string) => millrace(['erase', user, '--now', '--config', config]);
  const meals = (): string[] => rowIds(join(out, 'meals.ndjson'));
  return { service, first, second, third, run, erase, meals, work, path: join(work, name) };
}

const headOf = (text: Buffer, user: string): number => text.lastIndexOf(`{"task":1,"user_id":"${user}"`);

describe('a write that a crash has cut short', () => {
  test.each([
    ['in the line before the rows', (from: number) => from + 20],
    ['behind that line', (from: number, text: Buffer) => text.indexOf('\n', from) + 1],
    ['in the rows', (_: number, text: Buffer) => text.length - 10],
  ])('%s is cut off with its name, and what it was of is fetched again', async (_, endOf) => {
    const { service, first, second, run, meals, path } = await interrupted();
    const text = readFileSync(path);
    const from = headOf(text, second);
    truncateSync(path, endOf(from, text));
    const resumed = await run('--resume');
    expect([resumed.code, resumed.stderr]).toEqual([
      0,
      expect.stringContaining(`${path}: cut off ${endOf(from, text) - from} bytes`),
    ]);
    expect([service.asked.get(first), service.asked.get(second)]).toEqual([1, 2]);
    expect(meals()).toEqual(service.mealIds());
  });

  test('by a power cut, with sectors of zeros, is cut off too', async () => {
    const { service, second, run, meals, path } = await interrupted();
    const text = readFileSync(path);
    const sector = Math.ceil((headOf(text, second) + 600) / 512) * 512;
    writeFileSync(path, text.fill(0, sector));
    const resumed = await run('--resume');
    expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining(`${path}: cut off`)]);
    expect(meals()).toEqual(service.mealIds());
  });
});

test('a segment that is missing or damaged is an error that names it and what to do', async () => {
  const { run, work, path } = await interrupted();
  const text = readFileSync(path);
  const at = text.indexOf('\n') + 1;
  const other = Buffer.from(text);
  other[text.indexOf('"name"') + 1] = 0x4e;
  const headless = Buffer.from(text);
  headless[at] = 0x5b;
  for (const [damaged, what] of [
    [other, `is damaged at byte ${at}`],
    [headless, `is damaged at byte ${at}`],
    [text.subarray(at), 'is damaged at its beginning'],
    [null, 'is not there'],
  ] as const) {
    if (damaged === null) rmSync(path);
    else writeFileSync(path, damaged);
    const resumed = await run('--resume');
    expect([resumed.code, resumed.stderr]).toEqual([1, expect.stringContaining(`${path} ${what}`)]);
    expect(resumed.stderr).toContain(`remove ${work} to fetch all of them again`);
  }
  writeFileSync(path, text);
  expect((await run('--resume')).code).toBe(0);
});

test('a segment that cannot be begun ends a run with the reason', async () => {
  const folder = await temporaryFolder();
  const full = new Error('disk full');
  const note = (count: number) => (count === 1 ? Promise.resolve() : Promise.reject(full));
  const rows = new Map([['meals', [Buffer.alloc(2 ** 25, '\n')]]]);
  const fill = async (): Promise<void> => {
    await using segments = await Segments.open(folder, 0, note, () => undefined);
    for (let index = 0; index < 2; index += 1)
      await segments.append({ index, user: 'user-1' }, 'made up', rows);
  };
  await expect(fill()).rejects.toBe(full);
});

test('rows that were kept from an earlier backfill, and are gone, are an error', async () => {
  const { service, first, run, meals, path } = await interrupted();
  expect((await run('--resume')).code).toBe(0);
  service.instead = (_, user) => (user === first ? 404 : null);
  expect((await run(...RANGE)).code).toBe(3);
  expect(meals()).toEqual(service.mealIds());
  const work = dirname(dirname(path));
  const named = readdirSync(work).find((name) => name !== 'state.json') ?? '';
  const segment = join(work, named, basename(path));
  const lines = readFileSync(segment, 'utf8').split('\n');
  const kept = lines.findIndex((line, at) => at > 0 && line.startsWith('{"task":0,'));
  expect(kept).toBeGreaterThan(0);
  truncateSync(
    segment,
    Buffer.byteLength(
      lines
        .slice(0, kept)
        .map((line) => `${line}\n`)
        .join(''),
    ),
  );
  const resumed = await run('--resume');
  expect([resumed.code, resumed.stderr]).toEqual([1, expect.stringContaining(`rows of ${first}`)]);
});

test('an erasure takes a user out of what an unfinished run has fetched; the others are not fetched again', async () => {
  const { service, first, second, third, run, erase, meals, path } = await interrupted();
  expect(readFileSync(path, 'utf8')).toContain(first);
  expect((await erase(first)).code).toBe(0);
  expect(readFileSync(path, 'utf8')).not.toContain(first);
  expect((await run('--resume')).code).toBe(0);
  expect([first, second].map((user) => service.asked.get(user))).toEqual([1, 1]);
  expect(meals()).toEqual(service.mealIds([second, third]));
});

test('an erasure of all that a run has fetched does not hold it up', async () => {
  const { service, first, second, third, run, erase, meals } = await interrupted();
  for (const user of [first, second]) expect((await erase(user)).code).toBe(0);
  expect((await run('--resume')).code).toBe(0);
  expect(meals()).toEqual(service.mealIds([third]));
});

test('a run that an earlier version began is refused, and stays', async () => {
  const { run, work } = await interrupted();
  const path = join(work, 'state.json');
  const { segments: _, ...state } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  const text = JSON.stringify(state);
  writeFileSync(path, text);
  for (const args of [['--resume'], RANGE]) {
    const ended = await run(...args);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(work)]);
  }
  expect((await run('--resume')).stderr).toContain('resume it with the version that began it');
  expect(readFileSync(path, 'utf8')).toBe(text);
  writeFileSync(path, JSON.stringify({ ...state, written: true }));
  expect((await run(...RANGE)).code).toBe(0);
});

const task = (index: number) => ({ index, user: `user-${index}` });
const result = (rows: number) => ({ rows: { meals: rows }, rejects: 1, unknown: [] });
const row = (n: number) => Buffer.from(`{"n":${n},"x":"${'x'.repeat(1024 * 1024)}"}\n`);

const fill = async (segments: Segments, index: number, rows: number): Promise<void> => {
  const failed = segments.begin(task(index));
  await failed.write('meals', row(-1));
  const attempt = segments.begin(task(index));
  for (let n = 0; n < rows; n += 1) await attempt.write('meals', row(n));
  attempt.reject(`{"rejected":${index}}`);
  await attempt.finish(result(rows));
};

const numbersOf = async (segments: Segments, index: number): Promise<(number | string)[]> => {
  const found: (number | string)[] = [];
  await segments.read(index, async (name, rows) => {
    for (const line of rows.toString().split('\n').filter(Boolean))
      found.push(name === 'meals' ? Number(/^\{"n":(-?\d+)/.exec(line)?.[1]) : line);
  });
  return found;
};

test('more than one segment: rows come back in order, and not those of an attempt that failed', async () => {
  const folder = await temporaryFolder();
  const notes: number[] = [];
  const open = () =>
    Segments.open(
      folder,
      notes.length,
      async (count) => void notes.push(count),
      () => undefined,
    );
  {
    await using segments = await open();
    await Promise.all([0, 1, 2, 3].map((index) => fill(segments, index, 12)));
    const unfinished = segments.begin(task(4));
    await unfinished.write('meals', row(0));
  }
  expect(notes).toEqual([1, 2]);
  {
    await using segments = await open();
    await fill(segments, 4, 1);
    for (const index of [0, 1, 2, 3])
      expect(await numbersOf(segments, index)).toEqual([...Array(12).keys(), `{"rejected":${index}}`]);
    expect(await numbersOf(segments, 4)).toEqual([0, '{"rejected":4}']);
    expect([segments.result(0), segments.result(5)]).toEqual([result(12), undefined]);
  }
  await Segments.forget(folder, notes.length, (user) => user === 'user-2');
  const names = readdirSync(folder);
  expect(names).toEqual(['segment-000000.ndjson', 'segment-000001.ndjson']);
  for (const name of names) expect(readFileSync(join(folder, name)).includes('user-2')).toBe(false);
  {
    await using segments = await open();
    expect([segments.result(2), segments.result(3)]).toEqual([undefined, result(12)]);
  }
  // Only the last one can have been cut short.
  truncateSync(join(folder, names[0] ?? ''), 20 * 1024 * 1024);
  await expect(open()).rejects.toThrow(/segment-000000\.ndjson is damaged at byte \d+/);
});

test('what a run has fetched, and whose state is gone, is neither new nor complete: only --replace starts over', async () => {
  const { service, run, meals, work, path } = await interrupted();
  const state = join(work, 'state.json');
  renameSync(state, `${work}.kept`);
  for (const args of [['--resume'], ['--resume', ...RANGE], ['--resume', '--replace', ...RANGE], RANGE]) {
    const { code, stderr } = await run(...args);
    expect([code, stderr], args.join(' ')).toEqual([2, expect.stringContaining(`${state} is not there`)]);
    expect(stderr).toContain('--replace');
  }
  expect(existsSync(path)).toBe(true);
  renameSync(`${work}.kept`, state);
  expect((await run('--resume')).code).toBe(0);

  // Begun again in the folder of a finished one.
  service.instead = (_, user) => (user === service.users[2] ? 401 : null);
  expect((await run(...RANGE)).code).toBe(1);
  service.instead = () => null;
  rmSync(state);
  expect((await run('--resume')).code).toBe(2);
  expect((await run(...RANGE, '--replace')).code).toBe(0);
  expect([meals(), existsSync(work)]).toEqual([service.mealIds(), false]);
});

test('a run that was killed before its first state is no other run', async () => {
  const { service, run, meals, work, path } = await interrupted();
  rmSync(path);
  rmSync(join(work, 'state.json'));
  expect((await run(...RANGE)).code).toBe(0);
  expect([meals(), existsSync(work)]).toEqual([service.mealIds(), false]);
});
