import { describe, expect, test } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/start.ts';
import { backfill, sandbox } from '../../history/backfill/support.ts';
import { runAll, WAREHOUSES } from '../../tables/warehouses.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace } from '../../support/millrace.ts';
import { skipped } from '../../support/requirements.ts';
import { kindsOf, load, postgresServer } from './support.ts';

/** Summaries without a calendar date, and their tables. */
const TABLES = {
  electrocardiogram: 'electrocardiograms',
  sleep_cycle: 'sleep_cycles',
  menstrual_cycle: 'menstrual_cycles',
};
const RANGES = [
  ['2025-12-01', '2026-06-30'],
  ['2026-01-08', '2026-02-26'],
  ['2026-01-15', '2026-01-15'],
] as const;

/** Ids of all items by table, in plain HTTP. */
async function truthOf({ url, apiKey }: Sandbox, user: string): Promise<Record<string, string[]>> {
  const truth: Record<string, string[]> = {};
  for (const [resource, table] of Object.entries(TABLES)) {
    const path = `${url}/v2/summary/${resource}/${user}?start_date=2020-01-01&end_date=2030-01-01`;
    const answer = await fetch(path, { headers: { 'x-service-api-key': apiKey } });
    const items = ((await answer.json()) as Record<string, { id: string }[]>)[resource] ?? [];
    truth[table] = items.map(({ id }) => id).toSorted();
  }
  return truth;
}

/** Folders of pulls: all, then narrower ranges; then half of the items vanish, and the first range is pulled again. */
async function pulled() {
  const service = await sandbox({ users: 1, days: 60, since: '2026-01-01' });
  const [user = ''] = service.state.users.list(service.teamId).map(({ id }) => id);
  const pull = async ([since, until]: readonly [string, string]): Promise<string> => {
    const out = await temporaryFolder();
    const args = ['--resource', Object.keys(TABLES).join(), '--since', since, '--until', until];
    const ended = await backfill(service, out, '--all-users', ...args);
    expect([0, 3], ended.stderr).toContain(ended.code);
    return out;
  };
  const before = { folders: [] as string[], truth: await truthOf(service, user) };
  for (const range of RANGES) before.folders.push(await pull(range));
  service.state.health.hasVanished = (_, { id }) => Number.parseInt(String(id)[0] ?? '', 16) % 2 === 0;
  const after = { folders: [await pull(RANGES[0])], truth: await truthOf(service, user) };
  for (const [table, ids] of Object.entries(before.truth))
    expect([table, ids.length > (after.truth[table]?.length ?? 0)]).toEqual([table, true]);
  return [before, after];
}

describe.each(kindsOf(postgresServer()))('sessions loaded into $kind', ({ skip, make }) => {
  test.skipIf(skip)('are those of the service, also when some of them have vanished', async () => {
    const database = await make();
    for (const { folders, truth } of await pulled()) {
      for (const folder of folders) expect(await load(folder, database)).toMatchObject({ code: 0 });
      for (const [table, ids] of Object.entries(truth))
        expect([table, await database.sql(`SELECT id FROM ${table}_latest ORDER BY id`)]).toEqual([
          table,
          ids,
        ]);
    }
  });
});

describe.each(WAREHOUSES)('sessions loaded into $title by statements', ({ dialect, lack, open }) => {
  test.skipIf(lack !== null)(`are those of the service${skipped(lack)}`, async () => {
    const warehouse = await open();
    const run = async (...args: readonly string[]): Promise<void> => {
      const { code, stdout, stderr } = await millrace(['schema', '--dialect', dialect, ...args]);
      expect(code, stderr).toBe(0);
      await runAll(dialect, warehouse, stdout);
    };
    for (const table of Object.values(TABLES)) await run(table, '--only', 'tables,views');
    for (const { folders, truth } of await pulled()) {
      for (const folder of folders) await run('--backfill', folder);
      for (const [table, ids] of Object.entries(truth)) {
        const rows = await warehouse.rows(`SELECT id FROM ${table}_latest ORDER BY id`);
        expect([table, rows.map(([id]) => id)]).toEqual([table, ids]);
      }
    }
  });
});
