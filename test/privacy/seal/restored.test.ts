import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deliver } from '../../sinks/support.ts';
import { writeFiles } from '../../support/archives.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import {
  checked,
  forgedMark,
  LedgeredKeys,
  MASTER,
  MASTER_TEXT,
  OTHER,
  owner,
  ringOf,
  subject,
} from './support.ts';

const SLOT = 128;

const ledgerOf = ({ folder }: LedgeredKeys): string => join(folder, 'erasure', 'ledger.jsonl');
const STALE = { code: 'keys_stale', exit: 4 };

/** What is wrong with the keys on disk, to who has no ledger. */
async function problemsOf({ path }: LedgeredKeys): Promise<string[]> {
  return (await ringOf(path)).problems(null).map(({ code }) => code);
}

describe('fault 43: an older key store, or a key slot, restored', () => {
  it('a whole store from before an erasure is not opened, and the error names it and the ledger', async () => {
    const where = await LedgeredKeys.make();
    await where.used(0, 1, 2, 3);
    const before = await where.destroy(1);
    await where.destroy(2);
    writeFileSync(where.file, before);
    const error = await where.open().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(STALE);
    expect((error as { detail: string }).detail).toContain(where.path);
    expect((error as { detail: string }).detail).toContain(`erasure 1, ${ledgerOf(where)} at 2`);
    // It is left as it is.
    expect(readFileSync(where.file).equals(before)).toBe(true);
  });

  it('one slot restored over its mark is found without the ledger too', async () => {
    const where = await LedgeredKeys.make();
    const before = await where.used(0, 1, 2, 3);
    const now = await where.destroy(1, 2);
    before.copy(now, 2 * SLOT, 2 * SLOT, 3 * SLOT);
    writeFileSync(where.file, now);
    await expect(where.open()).rejects.toMatchObject(STALE);
    expect(await problemsOf(where)).toEqual(['slot_returned']);
    const { ledger } = await where.proof();
    const [problem] = (await ringOf(where.path)).problems(ledger);
    expect(problem).toMatchObject({
      code: 'slot_returned',
      detail: expect.stringContaining('1 destroyed keys'),
    });
  });

  it('a slot restored at the end of the file opens nothing, and is found', async () => {
    const where = await LedgeredKeys.make();
    const before = await where.used(0, 1, 2);
    await where.destroy(1);
    const slot = before.subarray(2 * SLOT, 3 * SLOT);
    writeFileSync(where.file, Buffer.concat([readFileSync(where.file), slot]));
    const ring = await ringOf(where.path);
    expect(await problemsOf(where)).toEqual(['slot_returned']);
    expect(ring.keyOf(owner(1))).toBeNull();
    await expect(where.open()).rejects.toMatchObject(STALE);
  });

  it('a forged mark over a key, and one copied from another key, are no erasure', async () => {
    const where = await LedgeredKeys.make();
    await where.used(0, 1, 2, 3);
    const sound = await where.destroy(0);
    const id = sound.subarray(2 * SLOT + 4, 2 * SLOT + 20);
    const forged = Buffer.from(sound);
    forgedMark(id).copy(forged, 2 * SLOT);
    writeFileSync(where.file, forged);
    const ring = await ringOf(where.path);
    expect(await problemsOf(where)).toEqual(['tombstone_forged']);
    expect(ring.counts).toEqual({ active: 3 - 1, destroyed: 1, damaged: 0 });
    await expect(where.open()).rejects.toMatchObject(STALE);
    const copied = Buffer.from(sound);
    sound.copy(copied, 2 * SLOT, SLOT, 2 * SLOT);
    writeFileSync(where.file, copied);
    expect(await problemsOf(where)).toEqual(['tombstone_forged']);
  });

  it('a ledger that somebody wrote to is not believed', async () => {
    const where = await LedgeredKeys.make();
    await where.used(0, 1);
    await where.destroy(0);
    const sound = readFileSync(ledgerOf(where), 'utf8');
    const id = readFileSync(where.file).toString('hex', 2 * SLOT + 4, 2 * SLOT + 20);
    const forged = sound
      .trimEnd()
      .split('\n')
      .at(-1)
      ?.replace(/"epoch":1,"key":"[0-9a-f]+"/, `"epoch":2,"key":"${id}"`);
    writeFileSync(ledgerOf(where), `${sound}${forged}\n`);
    await expect(where.open()).rejects.toMatchObject({ code: 'ledger_forged' });
    await expect(where.catchUp()).rejects.toMatchObject({ code: 'ledger_forged' });
    expect((await ringOf(where.path)).counts).toMatchObject({ active: 1, destroyed: 1 });
  });

  it('a mark that a flipped bit has ruined does not stop the next start', async () => {
    const where = await LedgeredKeys.make();
    await where.used(0, 1, 2);
    const bytes = await where.destroy(0, 1);
    bytes[2 * SLOT + 30] = (bytes[2 * SLOT + 30] ?? 0) ^ 1;
    writeFileSync(where.file, bytes);
    const store = await where.open();
    expect(store.ring.counts).toEqual({ active: 1, destroyed: 1, damaged: 1 });
    await store.rotate(OTHER);
    await store.close();
    await (await where.open(OTHER)).close();
  });
});

describe('catching up after a copy was restored', () => {
  it('destroys again what was destroyed since, and nothing else; keys made after the copy are marked too', async () => {
    const where = await LedgeredKeys.make();
    const before = await where.used(0, 1, 2, 3);
    await where.used(0, 1, 2, 3, 4, 5);
    await where.destroy(1, 5);
    writeFileSync(where.file, before);
    expect(await where.catchUp()).toBe(2);
    const store = await where.open();
    expect(store.ring.counts).toEqual({ active: 3, destroyed: 2, damaged: 0 });
    expect(store.ring.keyOf(owner(1))).toBeNull();
    expect(await store.destroy(subject('user-3'))).toBe(1);
    await store.close();
    await (await where.open()).close();
  });

  it('after a rotation marks still count, and an older store is still older', async () => {
    const where = await LedgeredKeys.make();
    const before = await where.used(0, 1, 2);
    await where.destroy(1);
    const store = await where.open();
    await store.rotate(OTHER);
    await store.close();
    await (await where.open(OTHER)).close();
    writeFileSync(where.file, before);
    await expect(where.open()).rejects.toMatchObject(STALE);
  });
});

it('a key file of another format is refused, and the error names the number', async () => {
  const where = await LedgeredKeys.make();
  const bytes = await where.used(0);
  bytes.write('1', 7, 'latin1');
  checked(bytes.subarray(0, SLOT));
  writeFileSync(where.file, bytes);
  const error = await where.open().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'keys_unusable' });
  expect((error as Error).message).toContain('keys.bin has format 1; this millrace reads 2');
});

describe('a key store that is not the one that was there, although no key was destroyed', () => {
  it('is refused as an older copy, and so is the newer one once the older has been caught up with', async () => {
    const where = await LedgeredKeys.make();
    const older = await where.used(1, 2);
    const newer = await where.used(3);
    writeFileSync(where.file, older);
    await expect(where.used(4)).rejects.toMatchObject(STALE);
    expect(readFileSync(where.file).equals(older)).toBe(true);
    expect(await where.catchUp()).toBe(0);
    // A user whose key was not in the copy gets another: what the first sealed, the second cannot open.
    const caught = await where.used(3);
    writeFileSync(where.file, newer);
    await expect(where.used()).rejects.toMatchObject(STALE);
    writeFileSync(where.file, caught);
    await where.used(4);
  });

  it('is refused where there is none any more, and none is begun', async () => {
    const where = await LedgeredKeys.make();
    await where.used();
    rmSync(where.path, { recursive: true });
    await expect(where.used(1)).rejects.toMatchObject(STALE);
    expect(readdirSync(where.path)).not.toContain('keys.bin');
    expect(await where.catchUp()).toBe(0);
    await where.used(1);
  });

  it('is refused as another one of the same master key', async () => {
    const where = await LedgeredKeys.make();
    await where.used(1);
    const other = await (await LedgeredKeys.make()).used(1);
    writeFileSync(where.file, other);
    await expect(where.used()).rejects.toMatchObject(STALE);
  });

  it('is itself after a rotation, and after an erasure of its newest key', async () => {
    const where = await LedgeredKeys.make();
    await where.used(1, 2);
    await where.destroy(2);
    const store = await where.open();
    await store.rotate(MASTER);
    await store.close();
    const before = await where.used(3);
    expect((await where.used()).equals(before)).toBe(true);
  });

  it('is not judged by a note that somebody wrote', async () => {
    const where = await LedgeredKeys.make();
    await where.used(1);
    const notes = join(where.folder, 'erasure', 'key-stores');
    const [name = ''] = readdirSync(notes);
    const note = readFileSync(join(notes, name), 'utf8');
    writeFileSync(join(notes, name), note.replace(/"newest":"[0-9a-f]{32}"/, '"newest":null'));
    await expect(where.used()).rejects.toMatchObject({ code: 'ledger_forged' });
  });
});

it('an older copy that --keys names opens nothing of an erased user where --config says who was erased', async () => {
  const where = await LedgeredKeys.make();
  const [path, copy] = [join(where.folder, 'archive'), join(where.folder, 'copy')];
  const encrypt = { store: where.path, masterKey: MASTER_TEXT };
  const config = writeConfig(where.folder, { sinks: { archive: { type: 'files', path, encrypt } } });
  await writeFiles(path, [deliver(1, 3)], { options: { encrypt } });
  cpSync(where.path, copy, { recursive: true });
  await where.destroy(1);
  const exits = async (...args: readonly string[]) => {
    const named = [...args, '--config', config, '--keys', copy];
    return (await millrace(named, { env: { MILLRACE_MASTER_KEY: MASTER_TEXT } })).code;
  };
  expect(await exits('export', path, '--out', join(where.folder, 'out'))).toBe(4);
  expect(existsSync(join(where.folder, 'out', 'events'))).toBe(false);
  expect(await exits('archive', 'verify', path)).toBe(4);
  expect(await exits('keys', 'status')).toBe(4);
  rmSync(copy, { recursive: true });
  cpSync(where.path, copy, { recursive: true });
  expect(await exits('keys', 'status')).toBe(0);
  expect(await exits('export', path, '--out', join(where.folder, 'out'))).toBe(0);
});

it('archive verify names keys that are gone, and does not take their records for whole', async () => {
  const where = await LedgeredKeys.make();
  const [path, encrypt] = [join(where.folder, 'archive'), { store: where.path, masterKey: MASTER_TEXT }];
  const config = writeConfig(where.folder, { sinks: { archive: { type: 'files', path, encrypt } } });
  await where.used();
  await writeFiles(path, [deliver(1, 3)], { options: { encrypt } });
  const verified = async () => await millrace(['archive', 'verify', path, '--config', config]);
  expect((await verified()).stdout).not.toContain('keys_stale');
  rmSync(where.path, { recursive: true });
  const { code, stdout } = await verified();
  expect(code).toBe(4);
  expect(stdout).toContain('keys_stale');
});
