import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { LoadSummary } from '../../src/load/options.ts';
import type { Place } from '../../src/load/bigquery/client.ts';
import { BigQueryStore } from '../../src/load/bigquery/store.ts';
import { toMillraceError } from '../../src/load/bigquery/failure.ts';
import { runLoad } from '../../src/load/run.ts';
import { TABLES } from '../../src/warehouse/tables.ts';
import { erasuresOver, folderStore } from '../erase/support.ts';
import { archive, mealEvent, mealOf } from '../export/support.ts';
import { FakeBigQuery, type Asked, type Fault } from '../support/bigquery.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { lacksWorking, skipped } from '../support/requirements.ts';
import { until } from '../support/until.ts';
import { PYTHON } from '../warehouse/warehouses.ts';

const NAMES = ['events', 'meals', 'meal_items'];
const COUNTS =
  'SELECT count(*), count(DISTINCT id), (SELECT count(*) FROM meals), (SELECT count(*) FROM meal_items) FROM events';
const { signal } = new AbortController();
const quiet = (): void => undefined;

const mealsFrom = (first: number, count: number): ReturnType<typeof mealEvent>[] =>
  Array.from({ length: count }, (_, n) => mealEvent(first + n));
const foodsOf = (numbers: readonly number[]): number => numbers.reduce((sum, n) => sum + mealOf(n).foods, 0);

async function started(): Promise<FakeBigQuery> {
  const fake = await FakeBigQuery.start(await temporaryFolder());
  onTestFinished(() => fake.stop());
  return fake;
}

function placeIn(fake: FakeBigQuery, changes: Partial<Place> = {}): Place {
  // Signing in is Google's own library's affair.
  const authClient = { getRequestHeaders: () => Promise.resolve(new Headers()) };
  const client = { apiEndpoint: fake.url, authClient } as unknown as NonNullable<Place['client']>;
  const { project, dataset } = fake;
  return { project, dataset, client, patience: { tries: 2, pause: 1 }, ...changes };
}

interface Loading {
  readonly wanted?: readonly string[];
  readonly stepBytes?: number;
  /** How often it tries again what may pass. */
  readonly tries?: number;
}

async function load(
  fake: FakeBigQuery,
  paths: string | readonly string[],
  { wanted = NAMES, stepBytes = 2 ** 30, tries = 2 }: Loading = {},
): Promise<LoadSummary> {
  const store = await BigQueryStore.open(placeIn(fake, { patience: { tries, pause: 1 } }));
  const told = {
    onProgress: quiet,
    onProblem: quiet,
    onReject: quiet,
    onUnknown: quiet,
    onWithoutTable: quiet,
  };
  return runLoad(store, { paths: [paths].flat(), tables: TABLES, wanted, stepBytes, signal, ...told });
}

async function dataFiles(path: string): Promise<string[]> {
  return (await readdir(path, { recursive: true })).filter((name) => name.includes('.ndjson')).sort();
}

async function numbersIn(fake: FakeBigQuery): Promise<number[]> {
  return (await fake.sql('SELECT id FROM events')).map((id) => Number(id.slice(4))).sort((a, b) => a - b);
}

const stagedIn = (fake: FakeBigQuery): Promise<string[]> =>
  fake.sql(`SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%\\_rows\\_%' ESCAPE '\\'`);

test('every event and its rows are there once, whatever runs how often', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 30));
  const foods = foodsOf(mealsFrom(1, 30).map((_, n) => n + 1));
  expect(await load(fake, path)).toMatchObject({
    complete: true,
    files: 3,
    records: 30,
    duplicates: 0,
    rows: { events: 30, meals: 30, meal_items: foods },
  });
  expect(await fake.sql(COUNTS)).toEqual([`30|30|30|${foods}`]);
  const asked = fake.asked.length;
  expect(await load(fake, path)).toMatchObject({ files: 0, before: 3, rows: {} });
  // A round without anything new asks, and changes nothing.
  expect(fake.asked.slice(asked).filter(({ path: at }) => at === '/upload/jobs')).toEqual([]);
  // One file has it twice, and it was there before.
  await archive(path, [mealEvent(31), mealEvent(31), mealEvent(3)]);
  expect(await load(fake, path)).toMatchObject({
    files: 2,
    records: 3,
    duplicates: 2,
    before: 3,
    rows: { events: 1 },
  });
  expect(await fake.sql(COUNTS)).toEqual([`31|31|31|${foods + mealOf(31).foods}`]);
  expect(await stagedIn(fake)).toEqual([]);
  expect(fake.expiring.size).toBeGreaterThan(0);
});

test('two files of one step that hold the same event give its rows once', async () => {
  const fake = await started();
  const [path, other] = [await temporaryFolder(), await temporaryFolder()];
  await archive(path, [mealEvent(1), mealEvent(4)]);
  await archive(other, [mealEvent(4), mealEvent(7)]);
  expect(await load(fake, [path, other])).toMatchObject({
    records: 4,
    duplicates: 1,
    rows: { events: 3, meals: 3 },
  });
  expect(await numbersIn(fake)).toEqual([1, 4, 7]);
});

test('keeps texts, times and whole numbers exactly, and what has no column', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 9));
  await load(fake, path);
  const { id } = mealOf(5);
  expect(
    await fake.sql(
      `SELECT id, replace(name, chr(10), '_'), source_id, timestamp = '2026-01-06T08:00:00.123456Z'::timestamptz,
         CAST(extra AS text) LIKE '%"never_seen":{"n":5.1%' FROM meals_latest WHERE id = '${id}'`,
    ),
  ).toEqual([`${id}|Meal_5|9007199254740993|true|true`]);
  expect(await fake.sql(`SELECT name FROM meal_items WHERE meal_id = '${id}'`)).toEqual([
    'Made up, 0 "tbsp"',
  ]);
});

test('has what is left after an erasure, of files rewritten and of files removed', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 30));
  await archive(path, [mealEvent(33)]);
  await archive(path, [mealEvent(7), mealEvent(34)]);
  await load(fake, path, { stepBytes: 1 });
  const { erasures } = erasuresOver(await temporaryFolder(), [folderStore(path)]);
  await erasures.request({ by: 'user', id: 'user-5', team: null }, true);
  expect((await erasures.run()).left).toEqual([]);
  expect(await load(fake, path)).toMatchObject({ complete: true });
  const left = [...mealsFrom(1, 30).map((_, n) => n + 1), 33, 34].filter((n) => n % 7 !== 5);
  expect(await numbersIn(fake)).toEqual(left);
  const n = left.length;
  expect(await fake.sql(COUNTS)).toEqual([`${n}|${n}|${n}|${foodsOf(left)}`]);
  expect(await load(fake, path)).toMatchObject({ files: 0, replaced: 0 });
});

test('keeps an event that another file has too when the first goes', async () => {
  const fake = await started();
  const [path, other] = [await temporaryFolder(), await temporaryFolder()];
  await archive(path, mealsFrom(1, 30));
  await archive(other, [mealEvent(3), mealEvent(99)]);
  // What no manifest lists has nothing to be missing from.
  rmSync(join(path, '_manifest.jsonl'));
  await load(fake, [path, other]);
  const [first = ''] = await dataFiles(path);
  rmSync(join(path, first));
  expect(await load(fake, [path, other])).toMatchObject({ replaced: 2 });
  const left = [
    ...mealsFrom(1, 30)
      .map((_, n) => n + 1)
      .filter((n) => n % 3 !== 0),
    3,
    99,
  ];
  expect(await numbersIn(fake)).toEqual(left.toSorted((a, b) => a - b));
});

test('fills a table that is added later from the whole archive', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 9));
  await load(fake, path, { wanted: ['events'] });
  expect(await load(fake, path, { wanted: ['meals'] })).toMatchObject({
    files: 3,
    rows: { events: 9, meals: 9 },
  });
  expect(await fake.sql('SELECT count(*) FROM meals_latest')).toEqual(['9']);
  expect(await numbersIn(fake)).toHaveLength(9);
});

/** Each round brings a new file, with an event that every file has, and takes the oldest away; its load is cut one request later than that before. */
test.each(['lost', 'answer lost'] as const)(
  'cut off at any request, the next run finishes it (%s)',
  { timeout: 120_000 },
  async (kind) => {
    const fake = await started();
    const path = await temporaryFolder();
    const files = new Map<string, readonly number[]>();
    const grow = async (numbers: readonly number[]): Promise<void> => {
      await archive(path, numbers.map((n) => mealEvent(n)));
      // What no manifest lists is gone when it is not there.
      rmSync(join(path, '_manifest.jsonl'));
      for (const file of await dataFiles(path)) if (!files.has(file)) files.set(file, numbers);
    };
    await grow([3]);
    await load(fake, path);
    let cuts = 0;
    for (let isCut = true; isCut; cuts += 1) {
      await grow([100 + cuts * 6, 103 + cuts * 6, 3]);
      const [oldest = ''] = files.keys();
      files.delete(oldest);
      rmSync(join(path, oldest));
      let at = Infinity;
      fake.fault = ({ nth, path: to }) => {
        // What comes before only asks.
        if (at === Infinity && to === '/upload/jobs') at = nth + cuts;
        return nth < at ? null : nth === at ? kind : 'lost';
      };
      isCut = await load(fake, path, { tries: 0 }).then(
        () => false,
        () => true,
      );
      fake.fault = () => null;
      await load(fake, path);
      const ids = [...new Set([...files.values()].flat())].sort((x, y) => x - y);
      expect(await numbersIn(fake), `cut ${cuts}`).toEqual(ids);
      const n = ids.length;
      // Nothing is left of the run that was cut, once another has begun.
      await load(fake, path);
      expect(await stagedIn(fake), `cut ${cuts}`).toEqual([]);
      expect(await fake.sql(COUNTS), `cut ${cuts}`).toEqual([`${n}|${n}|${n}|${foodsOf(ids)}`]);
    }
    expect(cuts).toBeGreaterThan(8);
  },
);

test('a run that finds the script of a killed one at work waits for it', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 3));
  await load(fake, path, { wanted: ['events'], stepBytes: 1 });
  await archive(path, [mealEvent(5)]);
  // The killed one: its script is taken and runs on, but nobody waits.
  let isKilled = false;
  fake.fault = (asked) => {
    if (isKilled) return 'lost';
    isKilled = isScript(fake, asked);
    return isKilled ? 'slow' : null;
  };
  await expect(load(fake, path, { tries: 0 })).rejects.toThrow();
  fake.fault = () => null;
  const before = fake.asked.length;
  const second = load(fake, path);
  await until('a look at the script', () => fake.asked.slice(before).some(isLookAtScript));
  await fake.finish();
  expect(await second).toMatchObject({ complete: true, files: 1, rows: { events: 1 } });
  expect(await numbersIn(fake)).toEqual([1, 2, 3, 5]);
});

test('of two loads at the same time one fails, and says so', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 3));
  const other = await temporaryFolder();
  await archive(other, [mealEvent(1), mealEvent(8)]);
  let isFirst = true;
  let overtaking: Promise<LoadSummary> | null = null;
  fake.fault = (asked) => {
    if (!isFirst || !isScript(fake, asked)) return null;
    isFirst = false;
    overtaking = load(fake, other);
    return 'slow';
  };
  const slow = load(fake, path);
  await until('the other load', () => overtaking !== null);
  await overtaking;
  await fake.finish();
  const error = await slow.catch((reason: unknown) => toMillraceError('p.d', reason));
  expect(error).toMatchObject({ code: 'database_in_use' });
  expect(await numbersIn(fake)).toEqual([1, 8]);
  await load(fake, path);
  expect(await numbersIn(fake)).toEqual([1, 2, 3, 8]);
});

test('a dataset that was made anew is filled anew: what a job did before does not count', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 3));
  await load(fake, path);
  for (const table of await fake.sql('SELECT table_name FROM duckdb_tables()'))
    await fake.sql(`DROP TABLE "${table}"`);
  await load(fake, path);
  expect(await numbersIn(fake)).toEqual([1, 2, 3]);
});

const BUSY = {
  status: 503,
  reason: 'backendError',
  message: 'Error encountered during execution. Retrying may solve the problem.',
};
const LIMIT = {
  status: 403,
  reason: 'rateLimitExceeded',
  message: 'Exceeded rate limits: too many api requests per user per method',
};
const JOB_LIMIT = {
  job: { reason: 'jobRateLimitExceeded', message: 'Exceeded rate limits: too many concurrent queries' },
};

test.each([
  ['503', BUSY],
  ['a rate limit', LIMIT],
  ['a lost answer', 'answer lost'],
  ['a failed job that may pass', JOB_LIMIT],
] as const)('%s, once at every kind of request, is tried again', async (_, fault) => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 3));
  const hit = new Set<string>();
  fake.fault = ({ method, path: at }): Fault | null => {
    const kind = `${method} ${at.replace(/millrace_[\w-]+/, '').replace(/_millrace_rows_\w+/, '')}`;
    if (hit.has(kind)) return null;
    hit.add(kind);
    return fault;
  };
  expect(await load(fake, path)).toMatchObject({ complete: true, rows: { events: 3 } });
  expect(hit.size).toBeGreaterThan(4);
  expect(await numbersIn(fake)).toEqual([1, 2, 3]);
});

test('what does not pass is named with its reason', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 3));
  const failing = async (fault: Fault): Promise<unknown> => {
    fake.fault = ({ method }) => (method === 'POST' ? fault : null);
    return load(fake, path).catch((error: unknown) => toMillraceError('made-up-project.health', error));
  };
  const denied = { reason: 'accessDenied', message: 'Access Denied: Table health.meals' };
  expect(await failing({ job: denied })).toMatchObject({
    code: 'database_refused',
    message: expect.stringMatching(
      /health: .*BigQuery Data Editor: .*Access Denied: Table health\.meals/,
    ) as string,
  });
  expect(await failing({ ...denied, status: 403 })).toMatchObject({ code: 'database_refused' });
  expect(await failing(BUSY)).toMatchObject({ code: 'database_unavailable' });
  expect(await failing(JOB_LIMIT)).toMatchObject({ code: 'database_unavailable' });
  await expect(BigQueryStore.open(placeIn(fake, { dataset: 'nowhere' }))).rejects.toMatchObject({
    code: 'database_refused',
    message: expect.stringContaining('create the dataset first') as string,
  });
});

test('an address that is none is a slip of usage', async () => {
  const path = await temporaryFolder();
  const { code, stderr } = await millrace(['load', path, '--to', 'bigquery:health']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('must be bigquery:PROJECT.DATASET')]);
});

const lack = lacksWorking('sqlglot (pip install sqlglot)', PYTHON, ['-c', 'import sqlglot']);

test.skipIf(lack !== null)(
  `sqlglot reads every statement of a load${skipped(lack)}`,
  { timeout: 60_000 },
  async () => {
    const fake = await started();
    const path = await temporaryFolder();
    await archive(path, mealsFrom(1, 6));
    rmSync(join(path, '_manifest.jsonl'));
    await load(fake, path, { wanted: TABLES.ofEvents().map(({ definition }) => definition.name) });
    rmSync(join(path, (await dataFiles(path))[0] ?? ''));
    await load(fake, path);
    const input = JSON.stringify(
      fake.scripts.map((sql, n) => ({ dialect: 'bigquery', name: `script ${n}`, sql })),
    );
    const parse = join(import.meta.dirname, '../warehouse/parse.py');
    const { stdout } = spawnSync(PYTHON, [parse], { input, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
    const found = JSON.parse(stdout) as { error?: string; whole?: string[] }[];
    expect(found).toHaveLength(fake.scripts.length);
    expect(found.filter(({ error }) => error !== undefined)).toEqual([]);
    // Those it knows by their first word only.
    expect([...new Set(found.flatMap(({ whole = [] }) => whole))].filter((word) => word !== 'BEGIN')).toEqual(
      [],
    );
    // A view is read without a default dataset.
    const views = fake.scripts
      .flatMap((sql) => sql.split(';\n'))
      .filter((sql) => sql.startsWith('CREATE OR REPLACE VIEW'));
    expect(views.length).toBeGreaterThan(10);
    for (const view of views) expect(view).not.toMatch(/\b(?:VIEW|FROM|JOIN) `\w+`/);
  },
);

function isScript(fake: FakeBigQuery, { method, path }: Asked): boolean {
  return method === 'POST' && path === '/jobs' && fake.bodies.at(-1)?.includes('_millrace_own') === true;
}

function isLookAtScript({ method, path }: Asked): boolean {
  return method === 'GET' && /^\/jobs\/millrace_[0-9a-f]{32}$/.test(path);
}
