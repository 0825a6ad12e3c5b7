import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openProof } from '../../src/proof/open.ts';
import { KeyStore } from '../../src/seal/key-store.ts';
import { temporaryFolder } from '../support/folders.ts';
import { checked, forgedMark, keysOf, MASTER, OTHER, owner, ringOf, subject } from './support.ts';

interface Place {
  readonly path: string;
  readonly file: string;
  readonly ledgerFile: string;
  readonly proof: ReturnType<typeof openProof>;
}

async function place(): Promise<Place> {
  const folder = await temporaryFolder();
  const path = join(folder, 'keys');
  const erasure = { path: join(folder, 'erasure') };
  await mkdir(path);
  return {
    path,
    file: join(path, 'keys.bin'),
    ledgerFile: join(erasure.path, 'ledger.jsonl'),
    proof: openProof({ erasure, proof: { key: null, trust: [] }, receipts: { path: null } }),
  };
}

async function open({ path, proof }: Place, master = MASTER): Promise<KeyStore> {
  return await KeyStore.open(path, master, (await proof()).ledger);
}

/** A store with keys of these users. */
async function storeOf(where: Place, users: number): Promise<void> {
  const store = await open(where);
  await keysOf(
    store,
    Array.from({ length: users }, (_, n) => owner(n)),
  );
  await store.close();
}

async function destroy(where: Place, ...users: string[]): Promise<void> {
  const store = await open(where);
  for (const user of users) await store.destroy(subject(user));
  await store.close();
}

const SLOT = 128;

describe('fault 43: an older key store, or a key slot, restored', () => {
  it('a whole store from before an erasure is not opened, and the error names it and the ledger', async () => {
    const where = await place();
    await storeOf(where, 4);
    await destroy(where, 'user-1');
    const before = readFileSync(where.file);
    await destroy(where, 'user-2');
    writeFileSync(where.file, before);
    const error = await open(where).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'keys_stale', exit: 4 });
    expect((error as { detail: string }).detail).toContain(where.path);
    expect((error as { detail: string }).detail).toContain(`erasure 1, ${where.ledgerFile} at 2`);
    // It is left as it is.
    expect(readFileSync(where.file).equals(before)).toBe(true);
  });

  it('one slot restored over its mark is found without the ledger too', async () => {
    const where = await place();
    await storeOf(where, 4);
    const before = readFileSync(where.file);
    await destroy(where, 'user-1', 'user-2');
    const now = readFileSync(where.file);
    before.copy(now, 2 * SLOT, 2 * SLOT, 3 * SLOT);
    writeFileSync(where.file, now);
    await expect(open(where)).rejects.toMatchObject({ code: 'keys_stale' });
    expect((await ringOf(where.path)).problems(null).map(({ code }) => code)).toEqual(['slot_returned']);
    const { ledger } = await where.proof();
    const [problem] = (await ringOf(where.path)).problems(ledger);
    expect(problem).toMatchObject({
      code: 'slot_returned',
      detail: expect.stringContaining('1 destroyed keys'),
    });
  });

  it('a slot restored at the end of the file opens nothing, and is found', async () => {
    const where = await place();
    await storeOf(where, 3);
    const before = readFileSync(where.file);
    await destroy(where, 'user-1');
    const slot = before.subarray(2 * SLOT, 3 * SLOT);
    writeFileSync(where.file, Buffer.concat([readFileSync(where.file), slot]));
    const ring = await ringOf(where.path);
    expect(ring.problems(null).map(({ code }) => code)).toEqual(['slot_returned']);
    expect(ring.keyOf(owner(1))).toBeNull();
    await expect(open(where)).rejects.toMatchObject({ code: 'keys_stale' });
  });

  it('a forged mark over a key, and one copied from another key, are no erasure', async () => {
    const where = await place();
    await storeOf(where, 4);
    await destroy(where, 'user-0');
    const sound = readFileSync(where.file);
    const id = sound.subarray(2 * SLOT + 4, 2 * SLOT + 20);
    const forged = Buffer.from(sound);
    forgedMark(id).copy(forged, 2 * SLOT);
    writeFileSync(where.file, forged);
    const ring = await ringOf(where.path);
    expect(ring.problems(null).map(({ code }) => code)).toEqual(['tombstone_forged']);
    expect(ring.counts).toEqual({ active: 3 - 1, destroyed: 1, damaged: 0 });
    await expect(open(where)).rejects.toMatchObject({ code: 'keys_stale' });
    const copied = Buffer.from(sound);
    sound.copy(copied, 2 * SLOT, SLOT, 2 * SLOT);
    writeFileSync(where.file, copied);
    expect((await ringOf(where.path)).problems(null).map(({ code }) => code)).toEqual(['tombstone_forged']);
  });

  it('a ledger that somebody wrote to is not believed', async () => {
    const where = await place();
    await storeOf(where, 2);
    await destroy(where, 'user-0');
    const sound = readFileSync(where.ledgerFile, 'utf8');
    const id = readFileSync(where.file).toString('hex', 2 * SLOT + 4, 2 * SLOT + 20);
    const forged = sound
      .trimEnd()
      .split('\n')
      .at(-1)
      ?.replace(/"epoch":1,"key":"[0-9a-f]+"/, `"epoch":2,"key":"${id}"`);
    writeFileSync(where.ledgerFile, `${sound}${forged}\n`);
    await expect(open(where)).rejects.toMatchObject({ code: 'ledger_forged' });
    await expect(KeyStore.catchUp(where.path, MASTER, (await where.proof()).ledger)).rejects.toMatchObject({
      code: 'ledger_forged',
    });
    expect((await ringOf(where.path)).counts).toMatchObject({ active: 1, destroyed: 1 });
  });

  it('a mark that a flipped bit has ruined does not stop the next start', async () => {
    const where = await place();
    await storeOf(where, 3);
    await destroy(where, 'user-0', 'user-1');
    const bytes = readFileSync(where.file);
    bytes[2 * SLOT + 30] = (bytes[2 * SLOT + 30] ?? 0) ^ 1;
    writeFileSync(where.file, bytes);
    const store = await open(where);
    expect(store.ring.counts).toEqual({ active: 1, destroyed: 1, damaged: 1 });
    await store.rotate(OTHER);
    await store.close();
    await (await open(where, OTHER)).close();
  });
});

describe('catching up after a copy was restored', () => {
  it('destroys again what was destroyed since, and nothing else; keys made after the copy are marked too', async () => {
    const where = await place();
    await storeOf(where, 4);
    const before = readFileSync(where.file);
    await storeOf(where, 6);
    await destroy(where, 'user-1', 'user-5');
    writeFileSync(where.file, before);
    const { ledger } = await where.proof();
    expect(await KeyStore.catchUp(where.path, MASTER, ledger)).toBe(2);
    const store = await open(where);
    expect(store.ring.counts).toEqual({ active: 3, destroyed: 2, damaged: 0 });
    expect(store.ring.keyOf(owner(1))).toBeNull();
    expect(await store.destroy(subject('user-3'))).toBe(1);
    await store.close();
    await (await open(where)).close();
  });

  it('after a rotation marks still count, and an older store is still older', async () => {
    const where = await place();
    await storeOf(where, 3);
    const before = readFileSync(where.file);
    await destroy(where, 'user-1');
    const store = await open(where);
    await store.rotate(OTHER);
    await store.close();
    await (await open(where, OTHER)).close();
    writeFileSync(where.file, before);
    await expect(open(where)).rejects.toMatchObject({ code: 'keys_stale' });
  });
});

it('a key file of another format is refused, and the error names the number', async () => {
  const where = await place();
  await storeOf(where, 1);
  const bytes = readFileSync(where.file);
  bytes.write('1', 7, 'latin1');
  checked(bytes.subarray(0, SLOT));
  writeFileSync(where.file, bytes);
  const error = await open(where).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'keys_unusable' });
  expect((error as Error).message).toContain('keys.bin has format 1; this millrace reads 2');
});
