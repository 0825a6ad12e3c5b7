import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { toMillraceError } from '../../src/load/bigquery/failure.ts';
import { BigQueryStore } from '../../src/load/bigquery/store.ts';
import type { LoadSummary } from '../../src/load/options.ts';
import { archive, mealEvent } from '../export/support.ts';
import type { Asked, FakeBigQuery, Fault } from '../support/bigquery.ts';
import { temporaryFolder } from '../support/folders.ts';
import { runCount } from '../support/run-count.ts';
import { until } from '../support/until.ts';
import {
  COUNTS,
  dataFiles,
  foodsOf,
  load,
  mealsFrom,
  numbersIn,
  placeIn,
  stagedIn,
  started,
} from './bigquery-support.ts';

/** Requests from one cut to the next: each is cut in both ways only where properties are tried often. */
const APART = runCount(1) > 1 ? 1 : 2;

/** Each round brings a new file, with an event that every file has, and takes the oldest away; its load is cut later than that before. */
test.each([
  ['lost', 0],
  ['answer lost', APART - 1],
] as const)('cut off at any request, the next run finishes it (%s)', async (kind, first) => {
  const fake = await started();
  const path = await temporaryFolder();
  const files = new Map<string, readonly number[]>();
  const grow = async (numbers: readonly number[]): Promise<void> => {
    await archive(
      path,
      numbers.map((n) => mealEvent(n)),
    );
    // What no manifest lists is gone when it is not there.
    rmSync(join(path, '_manifest.jsonl'));
    for (const file of await dataFiles(path)) if (!files.has(file)) files.set(file, numbers);
  };
  await grow([3]);
  await load(fake, path);
  let cuts = first;
  for (let isCut = true; isCut; cuts += APART) {
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
});

test('a run that finds the script of a killed one at work waits for it', async () => {
  const fake = await started();
  const path = await temporaryFolder();
  await archive(path, mealsFrom(1, 3));
  await load(fake, path, { stepBytes: 1 });
  await archive(path, [mealEvent(5)]);
  // The killed one: its script is taken and runs on, but nobody waits.
  let isKilled = false;
  fake.fault = (asked) => {
    if (isKilled) return 'lost';
    isKilled = isScript(fake, asked);
    return isKilled ? 'slow' : null;
  };
  await expect(load(fake, path, { tries: 0 })).rejects.toThrow(/request to .* failed/);
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
  const overtaking: Promise<LoadSummary>[] = [];
  fake.fault = (asked) => {
    if (!isFirst || !isScript(fake, asked)) return null;
    isFirst = false;
    overtaking.push(load(fake, other));
    return 'slow';
  };
  const slow = load(fake, path);
  await until('the other load', () => overtaking.length > 0);
  await Promise.all(overtaking);
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

function isScript(fake: FakeBigQuery, { method, path }: Asked): boolean {
  return method === 'POST' && path === '/jobs' && fake.bodies.at(-1)?.includes('_millrace_own') === true;
}

function isLookAtScript({ method, path }: Asked): boolean {
  return method === 'GET' && /^\/jobs\/millrace_[0-9a-f]{32}$/.test(path);
}
