import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type LeftItem, Owners } from '../../src/core/erasure.ts';
import { IdSearch } from '../../src/core/id-search.ts';
import type { ObjectStore } from '../../src/core/storage.ts';
import { eraseTable } from '../../src/erase/delta-tables.ts';
import { LineOwners } from '../../src/erase/file-kinds.ts';
import { openStore } from '../../src/storage/open.ts';
import { FIELDS, find } from '../erase/support.ts';
import { duckdb } from '../export/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { skipped } from '../support/requirements.ts';
import { deltalake, lacksDeltalake } from './deltalake.ts';
import { erasureOf } from './support.ts';

const GONE = 'made-up-user-who-goes';
const TYPES = ['byte', 'short', 'integer', 'long', 'float', 'double', 'decimal9', 'decimal38', 'boolean'];
const types = Object.fromEntries(
  [...TYPES, 'date', 'timestamp', 'binary', 'string'].map((type) => [type, type]),
);
const users = [GONE, 'user-1', 'user-2', 'user-4', GONE, 'user-5', 'user-6', 'user-7', GONE];
const made = users.map((user_id) => ({ user_id }));

const byUser = (found: readonly unknown[][]) => found.map((row) => row.join(' ')).sort();

const lacks = lacksDeltalake();

describe.skipIf(lacks !== null)(`erasure of tables that others have made${skipped(lacks)}`, () => {
  const ask = deltalake();
  const rows = async (table: string, columns = ['user_id', ...Object.keys(types)]) =>
    (await ask<{ rows: unknown[][] }>('rows', table, { columns })).rows;

  it('keeps each value of each type, for every reader', async () => {
    const out = await temporaryFolder();
    const table = join(out, 'theirs');
    await ask('create', table, { types, rows: made });
    const before = await rows(table);
    const { left, receipts } = await (await erasureOf(GONE, [out])).run();
    expect([left, receipts[0]?.not_searched, receipts[0]?.records_removed]).toEqual([[], [], 3]);
    expect(byUser(await rows(table))).toEqual(byUser(before.filter(([user]) => user !== GONE)));
    const sql = await duckdb();
    expect(
      await sql(`SELECT count(*)::INT, typeof(any_value(byte)), typeof(any_value(short))
        FROM read_parquet('${table}/*.parquet')`),
    ).toEqual([[6, 'TINYINT', 'SMALLINT']]);
    expect(find([out], [GONE])).toEqual([]);
  });

  it('a file that does not read back as it was stays, and nothing of its table is removed', async () => {
    const out = await temporaryFolder();
    const table = join(out, 'theirs');
    await ask('create', table, { types, rows: made });
    const before = readdirSync(table, { recursive: true });
    const rowsBefore = byUser(await rows(table));
    const left: LeftItem[] = [];
    const recorded: unknown[] = [];
    const subjects = [{ request: 'r1', by: 'user', id: GONE, team: null }] as const;
    for (const damage of [0, 4, 300]) {
      const store = await openStore(out);
      const damaging: ObjectStore = Object.create(store, {
        url: { value: store.url },
        list: { value: store.list.bind(store) },
        get: { value: store.get.bind(store) },
        head: { value: store.head.bind(store) },
        delete: { value: store.delete.bind(store) },
        purge: { value: store.purge.bind(store) },
        putIfAbsent: {
          value: (key: string, body: { bytes: Buffer }, signal?: AbortSignal) => {
            const bytes = Buffer.from(body.bytes);
            // From the end: the footer's length, the footer, and the values.
            if (!key.includes('.kept-')) return store.putIfAbsent(key, body, signal);
            const at = damage === 0 ? 30 : bytes.length - damage - 2;
            bytes[at] = (bytes[at] ?? 0) ^ 0xff;
            return store.putIfAbsent(key, { bytes }, signal);
          },
        },
      });
      await eraseTable({
        store: damaging,
        name: 'tables',
        prefix: 'theirs/',
        search: new IdSearch(subjects),
        owners: new LineOwners(new Owners(subjects), FIELDS),
        run: {
          subjects,
          signal: new AbortController().signal,
          recorded: [],
          record: (item) => Promise.resolve(void recorded.push(item)),
          leave: (item) => void left.push(item),
          searched: () => undefined,
          onStep: () => undefined,
        },
      });
      await store.close();
    }
    const reason = expect.stringContaining('did not read back') as unknown;
    const one = {
      item: expect.stringMatching(/^theirs\/part-.*\.parquet$/) as unknown,
      requests: ['r1'],
      reason,
    };
    expect(left).toMatchObject([one, one, one]);
    expect(recorded).toEqual([]);
    expect(readdirSync(table, { recursive: true })).toEqual(before);
    expect(byUser(await rows(table))).toEqual(rowsBefore);
  });
});
