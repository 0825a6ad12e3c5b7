import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LeftItem } from '../../../src/core/erasure.ts';
import type { ObjectStore } from '../../../src/core/storage.ts';
import { openStore } from '../../../src/storage/open.ts';
import { find } from '../../privacy/erase/support.ts';
import { duckdb, filesBelow } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { skipped } from '../../support/requirements.ts';
import { deltalake, lacksDeltalake } from './deltalake.ts';
import { eraseFrom, erasureOf } from './support.ts';

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

  for (const at of ['never', 'found', 'written', 'replaced', 'forgotten', 'removed'])
    it(`takes out a user that a partition is called after, ended at "${at}" and run again`, async () => {
      for (const user of [GONE, 'made up/é']) {
        const out = await temporaryFolder();
        const table = join(out, 'theirs');
        const named = made.map(({ user_id }) => ({ user_id: user_id === GONE ? user : user_id }));
        await ask('create', table, { types: { long: 'long' }, rows: named, partition_by: ['user_id'] });
        const before = await rows(table, ['user_id', 'long']);
        let isArmed = true;
        const erasure = await erasureOf(user, [out], (step) => {
          if (step !== at || !isArmed) return;
          isArmed = false;
          throw new Error('ended');
        });
        if (at !== 'never') expect((await erasure.run()).left).not.toEqual([]);
        const { left, receipts } = await erasure.run();
        expect([left, receipts[0]?.not_searched, receipts[0]?.records_removed]).toEqual([[], [], 3]);
        expect(JSON.stringify(receipts)).toContain('theirs/user_id=*/');
        expect(byUser(await rows(table, ['user_id', 'long']))).toEqual(
          byUser(before.filter(([whose]) => whose !== user)),
        );
        const traces = [user, encodeURIComponent(user), encodeURIComponent(encodeURIComponent(user))];
        expect(find([out], traces)).toEqual([]);
        expect(readdirSync(table).filter((name) => name.startsWith('user_id=')).length).toBe(6);
        const { files } = await ask<{ files: readonly string[] }>('facts', table);
        expect(filesBelow(table, /^user_id=.*\.parquet$/)).toHaveLength(files.length);
      }
    });

  it.each(['BROTLI', 'GZIP', 'ZSTD', 'UNCOMPRESSED'])(
    'reads what is compressed as %s',
    async (compression) => {
      const out = await temporaryFolder();
      const table = join(out, 'theirs');
      await ask('create', table, { types: {}, rows: made, compression });
      const { left, receipts } = await (await erasureOf(GONE, [out])).run();
      expect([left, receipts[0]?.not_searched, receipts[0]?.records_removed]).toEqual([[], [], 3]);
      expect(await rows(table, ['user_id'])).toHaveLength(6);
    },
  );

  it.each(['LZ4', 'LZ4_RAW'])('names what is compressed as %s on the receipt', async (compression) => {
    const out = await temporaryFolder();
    await ask('create', join(out, 'theirs'), { types: {}, rows: made, compression });
    const { left, receipts } = await (await erasureOf(GONE, [out])).run();
    expect(left).toMatchObject([
      { requests: [], reason: expect.stringContaining(`compressed as ${compression};`) as unknown },
    ]);
    expect(receipts[0]?.not_searched).toEqual([expect.stringMatching(/^theirs\/part-.*parquet/)]);
  });

  it('a file that does not read back as it was stays, and nothing of its table is removed', async () => {
    const out = await temporaryFolder();
    const table = join(out, 'theirs');
    await ask('create', table, { types, rows: made });
    const before = readdirSync(table, { recursive: true });
    const rowsBefore = byUser(await rows(table));
    const left: LeftItem[] = [];
    const recorded: unknown[] = [];
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
      const erased = await eraseFrom(damaging, 'theirs/', GONE);
      left.push(...erased.left);
      recorded.push(...erased.recorded);
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
