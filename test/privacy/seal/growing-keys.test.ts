import { createSecretKey } from 'node:crypto';
import { appendFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Io } from '../../../src/cli/io.ts';
import { openerOf } from '../../../src/cli/key-options.ts';
import { KeyStore } from '../../../src/privacy/seal/key-store.ts';
import { sealLine } from '../../../src/privacy/seal/record.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { keysOf, MASTER, MASTER_TEXT, owner } from './support.ts';

const LINE = Buffer.from('{"id":"msg_1"}');

async function scene() {
  const path = join(await temporaryFolder(), 'keys');
  const store = await KeyStore.open(path, MASTER);
  const sealed = async (n: number) => {
    const [key] = await keysOf(store, [owner(n)]);
    if (key === undefined) throw new Error('no key');
    return sealLine(key.id, createSecretKey(key.key), '2026-11-21T12:00:00.000Z', LINE);
  };
  await sealed(1);
  const io = { env: { MASTER: MASTER_TEXT } } as unknown as Io;
  const keys = await openerOf({ keys: path, masterKeyEnv: 'MASTER' }, io);
  if (keys === undefined) throw new Error('no keys');
  return { path, store, sealed, keys };
}

// A command reads the keys first and the archive then, which a receiver is writing to.
test('a record of a user who has come since the keys were read is opened', async () => {
  const { store, sealed, keys } = await scene();
  for (const n of [2, 3, 1]) expect(keys.open(await sealed(n))).toEqual({ ok: true, line: LINE });
  await store.close();
});

test('a key that is in no store stays unknown, also when the store is being written to or is gone', async () => {
  const { path, store, sealed, keys } = await scene();
  const others = await scene();
  const foreign = await others.sealed(2);
  const unknown = { ok: false, why: 'unknown_key' };
  expect(keys.open(foreign)).toEqual(unknown);
  appendFileSync(join(path, 'keys.bin'), Buffer.alloc(200));
  expect(keys.open(foreign)).toEqual(unknown);
  const late = await sealed(1);
  rmSync(path, { recursive: true });
  expect(keys.open(foreign)).toEqual(unknown);
  expect(keys.open(late)).toEqual({ ok: true, line: LINE });
  for (const one of [store, others.store]) await one.close();
});
