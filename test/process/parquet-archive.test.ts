import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, test } from 'vitest';
import type { ErasureReceipt } from '../../src/core/erasure.ts';
import type { ObjectStore } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { eventOf, secretOf, userId } from '../erase/support.ts';
import { recordsIn } from '../sinks/store-support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ALL_STORES, describeOnStores } from '../support/object-stores/emulators.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import type { Serving } from '../support/serving.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { scene } from './store-scene.ts';

const PARQUET = { format: 'parquet', compress: 'zstd', rotate: { every: '1h' } } as const;
const USERS = [1, 2, 3];

interface Lake {
  /** As commands are told it. */
  readonly place: string;
  readonly config: string;
  readonly env: Record<string, string>;
  /** Where to look without the product's reader of archives. */
  readonly store: ObjectStore;
}

/** From the receipt of events to the last command that reads them, and one user's erasure in between. @returns what is left */
async function recordsLeft({ place, config, env, store }: Lake): Promise<number> {
  const run = async (...args: string[]): Promise<{ code: number; json: Record<string, unknown> }> => {
    const { code, stdout, stderr } = await millrace([...args, '--json', '--config', config], { env });
    expect([args[0], code, stderr]).toEqual([args[0], 0, stderr]);
    const [last = '{}'] = stdout.trim().split('\n').slice(-1);
    const text = stdout.trimStart().startsWith('{\n') ? stdout : last;
    return { code: code ?? -1, json: JSON.parse(text) as Record<string, unknown> };
  };
  const sent = new Map<string, Buffer>();
  let receiver: Serving = await ReceiverProcess.start(config, { env });
  const post = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n += 1)
      for (const user of USERS) {
        const event = eventOf(user, n);
        const body = n % 2 === 0 ? event.body : Buffer.from(`${event.body.toString().slice(0, -1)}\r\n}\n`);
        expect((await postSigned(receiver.url, body, { id: event.id })).status).toBe(202);
        sent.set(event.id, body);
      }
  };
  /** Where the machine has much else to do, a sink can need longer than a flush waits for it. */
  const flush = async (): Promise<void> => {
    const { code } = await millrace(['flush', '--json', '--config', config], { env });
    if (code === 3) return flush();
    expect(code).toBe(0);
  };
  const expectAll = async (): Promise<void> => {
    const found = await recordsIn(store);
    expect(found.every(({ file }) => file.endsWith('.records.parquet'))).toBe(true);
    expect(new Map(found.map(({ id, body }) => [id, body.toString('base64')]))).toEqual(
      new Map(Array.from(sent, ([id, body]) => [id, body.toString('base64')])),
    );
    expect(found).toHaveLength(sent.size);
  };
  await post(0, 2);
  receiver.signal('SIGKILL');
  await receiver.exited;
  receiver = await Receiver.start(config, { env });
  await flush();
  await post(2, 4);
  await flush();
  await expectAll();
  expect((await run('archive', 'verify', place)).json).toMatchObject({ records: 12, differences: [] });
  expect((await run('archive', 'compact', place, '--min-age', '0s')).json).toMatchObject({ replaced: 2 });
  await expectAll();
  expect((await run('archive', 'verify', place)).json).toMatchObject({ records: 12, differences: [] });
  await post(4, 5);
  await flush();
  const out = join(dirname(config), 'rows');
  await run('export', place, '--out', out, '--table', 'events');
  await run('reconcile', '--since', '2020-01-01');
  const [receipt] = (await run('erase', userId(1), '--now')).json['receipts'] as [ErasureReceipt];
  // A spool may still have what it has sent on, and is rid of it too.
  const removed = receipt.items.filter(({ item }) => !item.endsWith('.sent')).map((item) => item.removed);
  expect(removed.reduce((sum, count) => sum + count, 0)).toBe(10);
  for (const id of sent.keys()) if (id.startsWith('msg_1_')) sent.delete(id);
  await expectAll();
  const secrets = (await recordsIn(store)).filter(({ body }) => body.includes(secretOf(1)));
  expect(secrets).toEqual([]);
  expect((await run('archive', 'verify', place)).json).toMatchObject({ records: 10, differences: [] });
  await run('replay', place, '--to', 'copy');
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  const copied = await recordsIn(await openStore(join(dirname(config), 'copy')));
  expect(new Set(copied.map(({ id }) => id))).toEqual(new Set(sent.keys()));
  return copied.length;
}

test('a folder of Parquet files: killed, joined, erased from, and read by every command', async () => {
  const folder = await temporaryFolder();
  const place = join(folder, 'archive');
  const copy = { type: 'files', path: join(folder, 'copy') };
  const config = writeConfig(folder, {
    erasure: { path: join(folder, 'erasure') },
    sinks: { archive: { type: 'files', path: place, ...PARQUET }, copy },
    routes: [{ match: '*', to: 'archive' }],
  });
  mkdirSync(place);
  expect(await recordsLeft({ place, config, env: {}, store: await openStore(place) })).toBe(10);
});

// What a store does otherwise than a folder is held by tests of its own; these join the long runs on stores.
describeOnStores(
  ' of Parquet objects',
  (emulator) => {
    test('killed, joined, erased from, and read by every command', async () => {
      const { place, config, store, storage, env } = await scene(emulator, 'parquet', PARQUET);
      const folder = dirname(config);
      writeConfig(folder, {
        storage,
        erasure: { path: join(folder, 'erasure') },
        sinks: {
          archive: { type: 'files', path: place, ...PARQUET },
          copy: { type: 'files', path: join(folder, 'copy') },
        },
        routes: [{ match: '*', to: 'archive' }],
      });
      expect(await recordsLeft({ place, config, env, store })).toBe(10);
    });
  },
  process.env['MILLRACE_STORE_KILLS'] === undefined ? [] : ALL_STORES,
);

test('a Parquet file of a table beside them is named on the receipt, and does not stop an erasure', async () => {
  const folder = await temporaryFolder();
  const place = join(folder, 'archive');
  const config = writeConfig(folder, {
    erasure: { path: join(folder, 'erasure') },
    sinks: { archive: { type: 'files', path: place, ...PARQUET } },
  });
  const receiver = await Receiver.start(config);
  const event = eventOf(1, 1);
  await postSigned(receiver.url, event.body, { id: event.id });
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  await connection.run(`COPY (SELECT '${userId(1)}' AS user_id) TO '${place}/table.parquet'`);
  connection.closeSync();
  const erase = (): ReturnType<typeof millrace> =>
    millrace(['erase', userId(1), '--now', '--json', '--config', config]);
  const damaged = join(place, 'damaged.records.parquet');
  writeFileSync(damaged, 'PAR1');
  const waits = await erase();
  expect(waits.code).toBe(3);
  expect(waits.stdout).toContain('"reason":"not a Parquet file, or cut short"');
  rmSync(damaged);
  const { code, stdout } = await erase();
  expect(code).toBe(3);
  expect(stdout).toContain('table.parquet');
  expect(stdout).toContain('"removed":1,"sha256_before":"');
});
