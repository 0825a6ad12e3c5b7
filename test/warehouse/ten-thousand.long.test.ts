import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { archive } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';
import { skipped } from '../support/requirements.ts';
import { eventOf, makeEvents, random, TYPES, VERSIONED, type MadeEvent } from './ten-thousand.ts';
import { WAREHOUSES, type Warehouse } from './warehouses.ts';

const TABLES = ['timeseries', ...VERSIONED.map(({ table }) => table)];

/** What a warehouse must answer: counts and sums of all rows, and of the last state. */
interface Answers {
  readonly samples: string[][];
  readonly lastSamples: string[][];
  readonly documents: Record<string, string[][]>;
}

const later = (a: MadeEvent, b: MadeEvent): number => a.received - b.received;

/** Worked out from the events alone. */
function oracle(arrived: readonly MadeEvent[]): Answers {
  const events = [...new Map(arrived.map((one) => [one.id, one])).values()];
  const samples = new Map<string, { count: number; sum: number }>();
  const last = new Map<string, { resource: string; value: number }>();
  for (const { resource, user, samples: own = [] } of events.toSorted(later)) {
    for (const { timestamp, value } of own) {
      const { count, sum } = samples.get(resource) ?? { count: 0, sum: 0 };
      samples.set(resource, { count: count + 1, sum: sum + value });
      last.set(`${user} ${resource} ${timestamp}`, { resource, value });
    }
  }
  const lastSums = new Map<string, { count: number; sum: number }>();
  for (const { resource, value } of last.values()) {
    const { count, sum } = lastSums.get(resource) ?? { count: 0, sum: 0 };
    lastSums.set(resource, { count: count + 1, sum: sum + value });
  }
  const documents = VERSIONED.map(({ resource, table }) => {
    const newest = new Map<string, MadeEvent>();
    const own = events.filter((one) => one.resource === resource);
    for (const one of own.toSorted(later)) {
      const { document, updated } = one.version as NonNullable<MadeEvent['version']>;
      const other = newest.get(document)?.version;
      if (other === undefined || updated >= other.updated) newest.set(document, one);
    }
    const rows = [...newest.values()].map(({ id, user, version }) => [
      version?.document ?? '',
      id,
      user,
      String(version?.number),
    ]);
    return [table, sorted([['rows', String(own.length), '', ''], ...rows])] as const;
  });
  return {
    samples: listed(samples),
    lastSamples: listed(lastSums),
    documents: Object.fromEntries(documents),
  };
}

function listed(sums: ReadonlyMap<string, { count: number; sum: number }>): string[][] {
  return sorted([...sums].map(([resource, { count, sum }]) => [resource, String(count), String(sum)]));
}

function sorted(rows: string[][]): string[][] {
  return rows.sort((a, b) => (a.join('|') < b.join('|') ? -1 : 1));
}

async function answersOf(warehouse: Warehouse): Promise<Answers> {
  const perResource = async (table: string): Promise<string[][]> => {
    const rows = await warehouse.rows(`SELECT resource, count(*), sum(value) FROM ${table} GROUP BY 1`);
    return sorted(rows.map(([resource = '', count = '', sum]) => [resource, count, String(Number(sum))]));
  };
  const documents: Record<string, string[][]> = {};
  for (const { table, column } of VERSIONED) {
    const [count = []] = await warehouse.rows(`SELECT count(*) FROM ${table}`);
    const latest = await warehouse.rows(`SELECT id, _event_id, user_id, ${column} FROM ${table}_latest`);
    const rows = latest.map(([id = '', event = '', user = '', number]) => [
      id,
      event,
      user,
      String(Number(number)),
    ]);
    documents[table] = sorted([['rows', count[0] ?? '', '', ''], ...rows]);
  }
  return {
    samples: await perResource('timeseries'),
    lastSamples: await perResource('timeseries_latest'),
    documents,
  };
}

async function printed(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await millrace(args);
  expect(code, `${args.join(' ')}: ${stderr}`).toBe(0);
  return stdout;
}

/** 6,000 events; then 4,000 later ones, with repeated, late, reordered and changed versions among them. */
function parts(): [MadeEvent[], MadeEvent[]] {
  const draw = random(20261122);
  const first = makeEvents(0, 6000, draw);
  const more = makeEvents(6000, 4000, draw);
  const repeated = first.filter(() => draw() < 0.02);
  return [first, [...more, ...repeated].toSorted(() => draw() - 0.5)];
}

test('there are 100 types', () => {
  expect(new Set(TYPES).size).toBe(100);
});

describe.each(WAREHOUSES)('10,000 events of 100 types, through archive and export, in $title', (kind) => {
  test.skipIf(kind.lack !== null)(
    `counts, sums and last states are those of the bodies${skipped(kind.lack)}`,
    async () => {
      const [path, out] = [await temporaryFolder(), await temporaryFolder()];
      chmodSync(out, 0o755);
      const warehouse = await kind.open();
      await warehouse.run(await printed(['schema', '--dialect', kind.dialect, '--only', 'tables,views']));
      const arrived: MadeEvent[] = [];
      const load = async (): Promise<void> => {
        for (const table of TABLES) {
          const folder = join(out, table);
          await printed(['export', path, '--out', folder, '--table', table, '--format', kind.format]);
          chmodSync(folder, 0o755);
          await warehouse.run(
            await printed(['schema', '--dialect', kind.dialect, '--load', '--export', folder]),
          );
        }
      };
      for (const part of parts()) {
        await archive(
          path,
          part.map((made, n) => eventOf(made, arrived.length + n)),
          {
            partitionBy: ['date'],
          },
        );
        arrived.push(...part);
        await load();
        expect(await answersOf(warehouse)).toEqual(oracle(arrived));
      }
      await load();
      expect(await answersOf(warehouse)).toEqual(oracle(arrived));
    },
  );
});
