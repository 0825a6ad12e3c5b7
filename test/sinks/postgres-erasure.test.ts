import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseOptions } from '../../src/sinks/postgres/config.ts';
import { createSink } from '../../src/sinks/postgres/sink.ts';
import { mealEvent } from '../export/support.ts';
import { userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { lacksPostgres, Postgres } from '../support/postgres.ts';
import { skipped } from '../support/requirements.ts';
import { makeContext, signal } from './support.ts';

const lack = lacksPostgres();
const TABLES = ['events', 'meals', 'meal_items'];

describe.skipIf(lack !== null)(`an erasure and the postgres sink${skipped(lack)}`, () => {
  let server: Postgres;
  beforeAll(() => (server = Postgres.start()));
  afterAll(() => server.stop());

  test('removes the rows of the user from every table, and those of nobody that name the user', async () => {
    const folder = await temporaryFolder();
    const options = { connectionString: server.url, schema: 'erased', tables: TABLES };
    const sink = createSink(parseOptions(options), makeContext());
    const events = Array.from({ length: 20 }, (_, n) => {
      const { body } = mealEvent(n + 1);
      const user = userId(n % 4);
      return mealEvent(n + 1, {
        user,
        body: Buffer.from(body.toString().replaceAll(/user-\d/g, user)),
      });
    });
    const unnamed = [2, 3].map((user) =>
      mealEvent(20 + user, {
        type: 'made.up.note',
        user: null,
        clientUser: null,
        // Not compact: the exact bytes are kept as base64 too.
        body: Buffer.from(`{ "note": "about ${userId(user).toUpperCase()}" }`),
      }),
    );
    await sink.open(signal);
    const batch = [...events, ...unnamed].map((event) => ({ event, destination: null }));
    expect(await sink.send(batch, signal)).toEqual(batch.map(() => ({ status: 'delivered' })));
    await sink.close(signal);
    const mentions = (user: number): number[] =>
      TABLES.map((table) =>
        Number(
          server.sql(
            `SELECT count(*) FROM erased.${table} AS t WHERE row_to_json(t)::text ILIKE '%${userId(user)}%'`,
          ),
        ),
      );
    const others = [0, 1, 3].map(mentions);
    expect(mentions(2)).toEqual([6, 5, expect.any(Number)]);
    const config = writeConfig(folder, {
      erasure: { path: join(folder, 'erasure') },
      sinks: { warehouse: { type: 'postgres', ...options } },
    });
    const ended = await millrace(['erase', userId(2), '--now', '--json', '--config', config]);
    expect(ended.code, ended.stderr).toBe(0);
    const { receipts } = JSON.parse(ended.stdout) as { receipts: { items: object[] }[] };
    expect(receipts[0]?.items).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ item: 'events', removed: 6 }),
        expect.objectContaining({ item: 'meals', removed: 5 }),
      ]),
    );
    expect(mentions(2)).toEqual([0, 0, 0]);
    expect([0, 1, 3].map(mentions)).toEqual(others);
    expect(server.sql('SELECT count(*) FROM erased.events')).toBe('16');
  });

  test('that cannot reach the database says so and stays open', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, {
      erasure: { path: join(folder, 'erasure') },
      sinks: {
        warehouse: { type: 'postgres', connectionString: 'postgres://nobody:made-up-word@127.0.0.1:1/none' },
      },
    });
    const ended = await millrace(['erase', userId(2), '--now', '--json', '--config', config]);
    expect(ended.code).toBe(3);
    expect(ended.stdout + ended.stderr).toMatch(/PostgreSQL at 127\.0\.0\.1:1\/none/);
    expect(ended.stdout + ended.stderr).not.toContain('made-up-word');
  });
});
