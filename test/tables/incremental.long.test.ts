import { readdirSync, readFileSync, writeFileSync, chmodSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { archive } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';
import { printed } from './support.ts';
import { WAREHOUSES, type RunningDialect, type Warehouse } from './warehouses.ts';

const FIRST = Date.UTC(2026, 10, 1, 6);
const USERS = 5;

interface Version {
  readonly id: string;
  readonly user: string;
  readonly name: string;
  readonly updated: string;
  readonly foods: readonly string[];
}

/** One delivery of a version of a meal. */
interface Delivery {
  readonly event: string;
  readonly received: number;
  readonly version: Version;
}

function delivery(n: number, meal: number, hour: number, changes: Partial<Version> = {}): Delivery {
  const version = {
    id: `meal-${meal}`,
    user: `user-${meal % USERS}`,
    name: `of delivery ${n}`,
    updated: new Date(FIRST + hour * 3_600_000).toISOString(),
    foods: Array.from({ length: (n % 3) + 1 }, (_, food) => `food ${food} of ${n}`),
    ...changes,
  };
  return { event: `event-${n}`, received: FIRST + hour * 3_600_000, version };
}

/** What comes in, run by run: three days, with late, repeated, reordered and changed versions. */
function runsOf(): Delivery[][] {
  const first = Array.from({ length: 30 }, (_, n) => delivery(n, n, n));
  const again = Array.from({ length: 10 }, (_, n) => delivery(100 + n, n, 31 + n));
  const late = Array.from({ length: 5 }, (_, n) =>
    delivery(200 + n, n, 42 + n, { updated: '2026-10-01T00:00:00.000Z', foods: ['late'] }),
  );
  const same = Array.from({ length: 5 }, (_, n) =>
    // The same time of the document as in `again`: what was received later counts.
    delivery(300 + n, 5 + n, 48 + n, { updated: again[5 + n]!.version.updated, foods: [] }),
  );
  const repeated = [first[3]!, again[4]!].map((one) => ({ ...one, received: FIRST + 50 * 3_600_000 }));
  const reordered = [delivery(401, 12, 60), delivery(400, 12, 59)];
  return [first, [...again, ...late], [...same, ...repeated, ...reordered]];
}

function eventOf({ event, received, version }: Delivery, n: number): JournalEvent {
  const { id, user, name, updated, foods } = version;
  const data = { id, name, updated_at: updated, data: Object.fromEntries(foods.map((food) => [food, {}])) };
  const body = {
    event_type: 'daily.data.meal.updated',
    data,
    team_id: 'team-1',
    user_id: user,
    client_user_id: null,
  };
  return contractEvent(n + 1, {
    id: event,
    type: 'daily.data.meal.updated',
    receivedAt: received,
    user,
    clientUser: null,
    body: Buffer.from(JSON.stringify(body)),
  });
}

function sorted(rows: string[][]): string[][] {
  return rows.sort((a, b) => (a.join('|') < b.join('|') ? -1 : 1));
}

/** What the tables must say, worked out from what was delivered. */
function oracle(deliveries: readonly Delivery[]): { all: string[][]; foods: string[][]; latest: string[][] } {
  const events = new Map<string, Delivery>();
  const newest = new Map<string, Delivery>();
  for (const one of deliveries) {
    events.set(one.event, one);
    const other = newest.get(one.version.id);
    const rank = ({ version, received }: Delivery): string => `${version.updated} ${received}`;
    if (other === undefined || rank(one) > rank(other)) newest.set(one.version.id, one);
  }
  return {
    all: sorted([...events.values()].map(({ event, version }) => [event, version.id, version.name])),
    foods: sorted(
      [...events.values()].flatMap(({ event, version }) => version.foods.map((food) => [event, food])),
    ),
    latest: sorted(
      [...newest.values()].map(({ version }) => [
        version.id,
        version.name,
        version.foods.toSorted().join(','),
      ]),
    ),
  };
}

async function tablesOf(warehouse: Warehouse): Promise<ReturnType<typeof oracle>> {
  const foods = new Map<string, string[]>();
  for (const [meal = '', name = ''] of await warehouse.rows('SELECT meal_id, name FROM meal_items_latest'))
    foods.set(meal, [...(foods.get(meal) ?? []), name].sort());
  const latest = await warehouse.rows('SELECT id, name FROM meals_latest');
  return {
    all: sorted(await warehouse.rows('SELECT _event_id, id, name FROM meals')),
    foods: sorted(await warehouse.rows('SELECT _event_id, name FROM meal_items')),
    latest: sorted(latest.map(([id = '', name = '']) => [id, name, (foods.get(id) ?? []).join(',')])),
  };
}

/** As in the guide: new and changed days, each of which replaces the table's rows of it. */
class Consumer {
  step = 0;
  readonly #warehouse: Warehouse;
  readonly #kind: RunningDialect;
  readonly #out: string;

  constructor(warehouse: Warehouse, kind: RunningDialect, out: string) {
    this.#warehouse = warehouse;
    this.#kind = kind;
    this.#out = out;
  }

  async create(): Promise<void> {
    for (const table of ['meals', 'meal_items'])
      await this.#warehouse.run(await this.schema([table, '--only', 'tables,views']));
  }

  async days(): Promise<void> {
    const step = Number(await this.#list('step'));
    for (const day of await this.#names('days')) {
      const format = ['--format', this.#kind.format, '--compress', 'gzip'];
      const from = ['--from', `${this.#out}/${day}/`, ...format, '--replace'];
      await this.#warehouse.run(await this.schema([tableOf(day), '--load', ...from]));
    }
    for (const day of await this.#names('emptied')) {
      const args = [tableOf(day), '--erase-day', day.slice(-10)];
      await this.#warehouse.run(await this.schema(args));
    }
    this.step = step;
  }

  async files(): Promise<void> {
    const step = Number(await this.#list('step'));
    for (const file of await this.#names('files'))
      await this.#warehouse.run(
        await this.schema([tableOf(file), '--load', '--from', `${this.#out}/${file}`]),
      );
    this.step = step;
  }

  async export(): Promise<void> {
    const step = Number(await this.#list('step'));
    const after = ['--export', this.#out, '--after', String(this.step)];
    await this.#warehouse.run(await this.schema(['--load', ...after]));
    this.step = step;
  }

  schema(args: readonly string[]): Promise<string> {
    return printed(['schema', ...args, '--dialect', this.#kind.dialect]);
  }

  #list(what: string): Promise<string> {
    return printed(['export', '--out', this.#out, '--list-new', what, '--after', String(this.step)]);
  }

  async #names(what: string): Promise<string[]> {
    return (await this.#list(what)).split('\n').filter((line) => line !== '');
  }
}

function tableOf(path: string): string {
  return path.split('/')[0] ?? '';
}

describe.each(WAREHOUSES)('hourly loads into $title', (kind) => {
  const why = skipped(kind.lack);

  async function start(): Promise<{ path: string; out: string; warehouse: Warehouse; consumer: Consumer }> {
    const [path, out] = [await temporaryFolder(), await temporaryFolder()];
    chmodSync(out, 0o755);
    const warehouse = await kind.open();
    const consumer = new Consumer(warehouse, kind, out);
    await consumer.create();
    return { path, out, warehouse, consumer };
  }

  async function arrive(path: string, out: string, deliveries: readonly Delivery[]): Promise<void> {
    await archive(path, deliveries.map(eventOf), { compress: 'none', partitionBy: ['date'] });
    await printed(['export', path, '--out', out, '--table', 'meals', '--format', kind.format]);
  }

  test.skipIf(kind.lack !== null).each(kind.ways)(
    `by %s: each event once, and the last state, whatever is loaded again${why}`,
    async (by) => {
      const { path, out, warehouse, consumer } = await start();
      const sofar: Delivery[] = [];
      for (const run of runsOf()) {
        sofar.push(...run);
        await arrive(path, out, run);
        const before = consumer.step;
        await consumer[by]();
        // Killed after loading and before it noted the step: the same is listed and loaded again.
        consumer.step = before;
        await consumer[by]();
        expect(await tablesOf(warehouse)).toEqual(oracle(sofar));
      }
      for (let hour = 0; hour < 2; hour += 1) await consumer[by]();
      consumer.step = 0;
      await consumer[by]();
      expect(await tablesOf(warehouse)).toEqual(oracle(sofar));
    },
  );

  test.skipIf(kind.lack !== null)(
    `an erasure takes its rows along, by the replaced days and by the delete statements${why}`,
    async () => {
      const { path, out, warehouse, consumer } = await start();
      const all = runsOf().flat();
      const alone = {
        ...delivery(500, 500, 400),
        version: { ...delivery(500, 500, 400).version, user: 'user-1' },
      };
      await arrive(path, out, [...all, alone]);
      await consumer.days();
      expect(await tablesOf(warehouse)).toEqual(oracle([...all, alone]));
      for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
        if (!name.endsWith('.ndjson')) continue;
        const lines = readFileSync(join(path, name), 'utf8').split('\n');
        writeFileSync(join(path, name), lines.filter((line) => !line.includes('user-1')).join('\n'));
      }
      writeFileSync(join(path, '_manifest.jsonl'), '');
      await printed(['export', path, '--out', out, '--table', 'meals', '--format', kind.format]);
      await consumer.export();
      const left = all.filter(({ version }) => version.user !== 'user-1');
      expect(await tablesOf(warehouse)).toEqual(oracle(left));
      await warehouse.run(
        await consumer.schema(['--erase', "o'hara", '--erase', 'user-2']).then(only(['meals', 'meal_items'])),
      );
      expect(await tablesOf(warehouse)).toEqual(
        oracle(left.filter(({ version }) => version.user !== 'user-2')),
      );
    },
  );
});

/** The statements for some tables. */
function only(tables: readonly string[]): (sql: string) => string {
  return (sql) =>
    sql
      .split('\n\n')
      .filter((one) =>
        tables.some((table) => new RegExp(`FROM ["\`]${table}["\`]|EXISTS ["\`]events["\`]`).test(one)),
      )
      .join('\n');
}

test('--replace needs the folder of a day', async () => {
  const load = ['schema', 'meals', '--dialect', 'duckdb', '--load', '--replace', '--from', './meals/'];
  const { code, stderr } = await millrace(load);
  expect([code, stderr]).toEqual([2, expect.stringContaining('is not the folder of one day')]);
});
