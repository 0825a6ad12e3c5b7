import { readdir } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import type { Place } from '../../src/load/bigquery/client.ts';
import { BigQueryStore } from '../../src/load/bigquery/store.ts';
import type { LoadSummary } from '../../src/load/options.ts';
import { runLoad } from '../../src/load/run.ts';
import { TABLES } from '../../src/warehouse/tables.ts';
import { mealEvent, mealOf } from '../export/support.ts';
import { FakeBigQuery } from '../support/bigquery.ts';
import { temporaryFolder } from '../support/folders.ts';
import { QUIET } from './quiet.ts';

const NAMES = ['events', 'meals', 'meal_items'];
export const COUNTS =
  'SELECT count(*), count(DISTINCT id), (SELECT count(*) FROM meals), (SELECT count(*) FROM meal_items) FROM events';
const { signal } = new AbortController();

export const mealsFrom = (first: number, count: number): ReturnType<typeof mealEvent>[] =>
  Array.from({ length: count }, (_, n) => mealEvent(first + n));
export const foodsOf = (numbers: readonly number[]): number =>
  numbers.reduce((sum, n) => sum + mealOf(n).foods, 0);

export async function started(): Promise<FakeBigQuery> {
  const fake = await FakeBigQuery.start(await temporaryFolder());
  onTestFinished(() => fake.stop());
  return fake;
}

export function placeIn(fake: FakeBigQuery, changes: Partial<Place> = {}): Place {
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

export async function load(
  fake: FakeBigQuery,
  paths: string | readonly string[],
  { wanted = NAMES, stepBytes = 2 ** 30, tries = 2 }: Loading = {},
): Promise<LoadSummary> {
  const store = await BigQueryStore.open(placeIn(fake, { patience: { tries, pause: 1 } }));
  return runLoad(store, {
    paths: [paths].flat(),
    places: new Places(),
    tables: TABLES,
    wanted,
    stepBytes,
    signal,
    ...QUIET,
  });
}

export async function dataFiles(path: string): Promise<string[]> {
  return (await readdir(path, { recursive: true })).filter((name) => name.includes('.ndjson')).sort();
}

export async function numbersIn(fake: FakeBigQuery): Promise<number[]> {
  return (await fake.sql('SELECT id FROM events')).map((id) => Number(id.slice(4))).sort((a, b) => a - b);
}

export const stagedIn = (fake: FakeBigQuery): Promise<string[]> =>
  fake.sql(`SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%\\_rows\\_%' ESCAPE '\\'`);
