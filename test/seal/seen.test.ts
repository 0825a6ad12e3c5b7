import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openProof } from '../../src/proof/open.ts';
import { KeyStore } from '../../src/seal/key-store.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { deliver, filesSink, signal } from '../sinks/support.ts';
import { keysOf, MASTER, MASTER_TEXT, owner, subject } from './support.ts';

interface Place {
  readonly folder: string;
  readonly keys: string;
  readonly file: string;
  readonly proof: ReturnType<typeof openProof>;
}

async function place(): Promise<Place> {
  const folder = await temporaryFolder();
  const keys = join(folder, 'keys');
  const erasure = { path: join(folder, 'erasure') };
  const proof = openProof({ erasure, proof: { key: null, trust: [] }, receipts: { path: null } });
  return { folder, keys, file: join(keys, 'keys.bin'), proof };
}

/** Opens the store, has it make keys of these users, and closes it. @returns the file then */
async function used({ keys, file, proof }: Place, ...users: number[]): Promise<Buffer> {
  const store = await KeyStore.open(keys, MASTER, (await proof()).ledger);
  await keysOf(
    store,
    users.map((n) => owner(n)),
  );
  await store.close();
  return readFileSync(file);
}

async function catchUp({ keys, proof }: Place): Promise<number> {
  return await KeyStore.catchUp(keys, MASTER, (await proof()).ledger);
}

const STALE = { code: 'keys_stale', exit: 4 };

describe('a key store that is not the one that was there, although no key was destroyed', () => {
  it('is refused as an older copy, and so is the newer one once the older has been caught up with', async () => {
    const where = await place();
    const older = await used(where, 1, 2);
    const newer = await used(where, 3);
    writeFileSync(where.file, older);
    await expect(used(where, 4)).rejects.toMatchObject(STALE);
    expect(readFileSync(where.file).equals(older)).toBe(true);
    expect(await catchUp(where)).toBe(0);
    // A user whose key was not in the copy gets another: what the first sealed, the second cannot open.
    const caught = await used(where, 3);
    writeFileSync(where.file, newer);
    await expect(used(where)).rejects.toMatchObject(STALE);
    writeFileSync(where.file, caught);
    await used(where, 4);
  });

  it('is refused where there is none any more, and none is begun', async () => {
    const where = await place();
    await used(where);
    rmSync(where.keys, { recursive: true });
    await expect(used(where, 1)).rejects.toMatchObject(STALE);
    expect(readdirSync(where.keys)).not.toContain('keys.bin');
    expect(await catchUp(where)).toBe(0);
    await used(where, 1);
  });

  it('is refused as another one of the same master key', async () => {
    const where = await place();
    await used(where, 1);
    const other = await used(await place(), 1);
    writeFileSync(where.file, other);
    await expect(used(where)).rejects.toMatchObject(STALE);
  });

  it('is itself after a rotation, and after an erasure of its newest key', async () => {
    const where = await place();
    await used(where, 1, 2);
    const store = await KeyStore.open(where.keys, MASTER, (await where.proof()).ledger);
    await store.destroy(subject('user-2'));
    await store.rotate(MASTER);
    await store.close();
    const before = await used(where, 3);
    expect((await used(where)).equals(before)).toBe(true);
  });

  it('is not judged by a note that somebody wrote', async () => {
    const where = await place();
    await used(where, 1);
    const notes = join(where.folder, 'erasure', 'key-stores');
    const [name = ''] = readdirSync(notes);
    const note = readFileSync(join(notes, name), 'utf8');
    writeFileSync(join(notes, name), note.replace(/"newest":"[0-9a-f]{32}"/, '"newest":null'));
    await expect(used(where)).rejects.toMatchObject({ code: 'ledger_forged' });
  });
});

it('an older copy that --keys names opens nothing of an erased user where --config says who was erased', async () => {
  const where = await place();
  const [path, copy] = [join(where.folder, 'archive'), join(where.folder, 'copy')];
  const encrypt = { store: where.keys, masterKey: MASTER_TEXT };
  const config = writeConfig(where.folder, { sinks: { archive: { type: 'files', path, encrypt } } });
  const { sink } = filesSink(path, { encrypt });
  await sink.open();
  await sink.send(deliver(1, 3), signal);
  await sink.close(signal);
  cpSync(where.keys, copy, { recursive: true });
  const store = await KeyStore.open(where.keys, MASTER, (await where.proof()).ledger);
  expect(await store.destroy(subject('user-1'))).toBe(1);
  await store.close();
  const exits = async (...args: readonly string[]) => {
    const named = [...args, '--config', config, '--keys', copy];
    return (await millrace(named, { env: { MILLRACE_MASTER_KEY: MASTER_TEXT } })).code;
  };
  expect(await exits('export', path, '--out', join(where.folder, 'out'))).toBe(4);
  expect(existsSync(join(where.folder, 'out', 'events'))).toBe(false);
  expect(await exits('archive', 'verify', path)).toBe(4);
  expect(await exits('keys', 'status')).toBe(4);
  rmSync(copy, { recursive: true });
  cpSync(where.keys, copy, { recursive: true });
  expect(await exits('keys', 'status')).toBe(0);
  expect(await exits('export', path, '--out', join(where.folder, 'out'))).toBe(0);
});

it('archive verify names keys that are gone, and does not take their records for whole', async () => {
  const where = await place();
  const [path, encrypt] = [join(where.folder, 'archive'), { store: where.keys, masterKey: MASTER_TEXT }];
  const config = writeConfig(where.folder, { sinks: { archive: { type: 'files', path, encrypt } } });
  await used(where);
  const { sink } = filesSink(path, { encrypt });
  await sink.open();
  await sink.send(deliver(1, 3), signal);
  await sink.close(signal);
  const verified = async () => await millrace(['archive', 'verify', path, '--config', config]);
  expect((await verified()).stdout).not.toContain('keys_stale');
  rmSync(where.keys, { recursive: true });
  const { code, stdout } = await verified();
  expect(code).toBe(4);
  expect(stdout).toContain('keys_stale');
});
