import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readArchive } from '../../../src/archive/read.ts';
import type { ArchiveItem } from '../../../src/archive/read-line.ts';
import { verifyArchive } from '../../../src/archive/verify.ts';
import type { ErasedItem } from '../../../src/core/erasure.ts';
import type { RecordOpener } from '../../../src/core/sealed-record.ts';
import { KeyErasure } from '../../../src/privacy/seal/key-erasure.ts';
import { awkwardBodies, contractEvent } from '../../../src/sinks/contract-events.ts';
import { createVerifier } from '../../../src/receive/verify/registry.ts';
import { differences } from '../../archive/support.ts';
import { deliver, filesSink, signal } from '../../sinks/support.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { MASTER, ringOf, runOf, sealedPlace, subject, type Sealed } from './support.ts';

const CHILD = fileURLToPath(new URL('crash-child.ts', import.meta.url));

async function items(path: string, opener?: RecordOpener, parts = false): Promise<ArchiveItem[]> {
  return Array.fromAsync(readArchive(path, { opener, parts }));
}

/** Ids of the records that open, and for the others why they do not. */
async function seen(path: string, opener?: RecordOpener, parts = false): Promise<string[]> {
  return (await items(path, opener, parts)).map((item) =>
    item.kind === 'record' ? item.record.id : (item.sealed?.why ?? item.reason),
  );
}

function archived({ path, encrypt }: Sealed, batches: ReturnType<typeof deliver>[], options = {}) {
  return writeFiles(path, batches, { options: { encrypt, ...options } });
}

function plainFileOf(archive: string): string {
  const files = readdirSync(archive, { recursive: true, encoding: 'utf8' });
  return files.find((name) => name.endsWith('.ndjson')) ?? '';
}

/** All that lies in a folder, what is compressed unpacked, the names too. */
function everything(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => {
      if (!entry.isFile()) return entry.name;
      const bytes = readFileSync(join(entry.parentPath, entry.name));
      return `${entry.name}\n${(entry.name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('latin1')}`;
    })
    .join('\n');
}

describe('a sealed archive', () => {
  it.each(['none', 'gzip', 'zstd'])(
    '%s: opens to the records that were sent, byte for byte',
    async (compress) => {
      const folder = await sealedPlace();
      const bodies = [...awkwardBodies(), Buffer.from([0x7b, 0xff, 0x7d])];
      const events = bodies.map((body, i) => contractEvent(i + 1, { body }));
      await archived(folder, [batchOf(...events)], { compress });
      const found = await items(folder.path, await ringOf(folder.store));
      expect(
        found.map(
          (item) => item.kind === 'record' && item.sealed && [item.record.id, item.body.toString('latin1')],
        ),
      ).toEqual(events.map(({ id, body }) => [id, body.toString('latin1')]));
    },
  );

  it('stolen without its keys, it tells no id, type, team, user or text', async () => {
    const folder = await sealedPlace();
    const unnamed = contractEvent(50, { team: null, user: null, clientUser: null });
    await archived(folder, [deliver(1, 40), batchOf(unnamed)]);
    // Unfinished files are sealed too.
    const { sink } = filesSink(folder.path, { encrypt: folder.encrypt });
    await sink.open();
    await sink.send(deliver(41, 5), signal);
    const text = everything(folder.path);
    expect(text).toContain('"sealed":1');
    for (const secret of [
      'msg_',
      'user-',
      'team-1',
      'customer-patient',
      'meal',
      'daily',
      'v1,AAAA',
      'webhooks',
      'event',
    ]) {
      expect(text).not.toContain(secret);
      const encoded = Buffer.from(secret.repeat(3)).toString('base64').slice(4, -4);
      if (encoded.length > 8) expect(text).not.toContain(encoded);
    }
    const keys = everything(folder.store);
    for (const secret of ['user-', 'team-1', 'customer-patient']) expect(keys).not.toContain(secret);
    await sink.close(signal);
  });

  it('says why a record does not open', async () => {
    const folder = await sealedPlace();
    await archived(folder, [deliver(1, 2)], { compress: 'none' });
    expect(await seen(folder.path)).toEqual(['no_keys', 'no_keys']);
    const file = plainFileOf(folder.path);
    const path = join(folder.path, file);
    writeFileSync(path, readFileSync(path, 'utf8').replace(/"received_at":"2026/, '"received_at":"2025'));
    const ring = await ringOf(folder.store);
    expect(await seen(folder.path, ring)).toEqual(['damaged', 'msg_2']);
    const other = await sealedPlace();
    await archived(other, [deliver(1, 1)]);
    expect(await seen(folder.path, await ringOf(other.store))).toEqual(['unknown_key', 'unknown_key']);
  });

  it('takes sealed records beside plain ones when an archive is sealed from some day on', async () => {
    const folder = await sealedPlace();
    await writeFiles(folder.path, [deliver(1, 2)], { killed: true });
    await archived(folder, [deliver(1, 4)]);
    expect(await seen(folder.path, await ringOf(folder.store))).toEqual(['msg_1', 'msg_2', 'msg_3', 'msg_4']);
    expect(await verifyArchive(folder.path)).toMatchObject({ records: 4, differences: [] });
  });

  it('keeps no events whole: they would lie there in the clear', async () => {
    const { path, encrypt } = await sealedPlace();
    const { sink } = filesSink(path, { encrypt });
    await sink.open();
    await expect(sink.keep(contractEvent(1))).rejects.toThrow('cannot keep large events');
    await sink.close(signal);
  });
});

describe('a sealed archive after kill -9', () => {
  it('every record that was delivered is there once, also when it is sent again', async () => {
    const folder = await sealedPlace();
    const child = spawnSync(process.execPath, [
      CHILD,
      'records',
      folder.store,
      MASTER.toString('hex'),
      folder.path,
      '20',
    ]);
    expect([child.signal, child.stderr.toString()]).toEqual(['SIGKILL', '']);
    expect(JSON.parse(child.stdout.toString())).toEqual(Array.from({ length: 20 }, () => 'delivered'));
    expect(await seen(folder.path, await ringOf(folder.store), true)).toHaveLength(20);
    await archived(folder, [deliver(1, 25)]);
    const found = await seen(folder.path, await ringOf(folder.store));
    expect(found.toSorted()).toEqual(Array.from({ length: 25 }, (_, n) => `msg_${n + 1}`).toSorted());
    expect(await verifyArchive(folder.path)).toMatchObject({ records: 25, differences: [] });
  });
});

describe('erasure of a sealed archive', () => {
  it('while it is open: the user’s records are closed for ever, in files that are not touched', async () => {
    const folder = await sealedPlace();
    const { sink } = filesSink(folder.path, { encrypt: folder.encrypt });
    await sink.open();
    await sink.send(deliver(1, 14), signal);
    const before = everything(folder.path);
    const recorded: ErasedItem[] = [];
    const one = subject('user-3');
    const record = (item: ErasedItem) => Promise.resolve(void recorded.push(item));
    await sink.erasable()?.erase(runOf([one, subject('unknown')], { recorded, record }));
    expect(recorded).toEqual([
      expect.objectContaining({ store: 'keys of archive', item: 'keys.bin', removed: { [one.request]: 1 } }),
    ]);
    expect(everything(folder.path)).toBe(before);
    // What comes again of the user is sealed with another key.
    await sink.send(deliver(17, 1), signal);
    await sink.close(signal);
    const found = await seen(folder.path, await ringOf(folder.store));
    expect(found.filter((id) => id === 'erased')).toHaveLength(2);
    expect(found).toContain('msg_17');
    expect(found).toHaveLength(15);
    expect(await verifyArchive(folder.path)).toMatchObject({ records: 15, differences: [] });
  });

  it('while no process has it open, and a copy of the archive made before is closed with it', async () => {
    const folder = await sealedPlace();
    await archived(folder, [deliver(1, 7)]);
    const run = runOf([subject('customer-patient-123', 'client_user')]);
    await KeyErasure.at('archive', folder.store, () => MASTER).erase(run);
    expect(new Set(await seen(folder.path, await ringOf(folder.store)))).toEqual(new Set(['erased']));
  });

  it('records that name no user are sealed by team: that they are not searched is said, but only where there are some', async () => {
    const folder = await sealedPlace();
    const event = contractEvent(1);
    const left: string[] = [];
    const run = runOf([subject('user-1')], {
      leave: ({ item, requests }) => void left.push(`${item}: ${requests.length}`),
    });
    await archived(folder, [batchOf(event)]);
    await KeyErasure.at('archive', folder.store, () => MASTER).erase(run);
    expect(left).toEqual([]);
    const unnamed = { ...event, id: 'msg_unnamed', user: null, clientUser: null };
    await archived(folder, [batchOf(unnamed)]);
    await KeyErasure.at('archive', folder.store, () => MASTER).erase(run);
    expect(left).toEqual(['sealed records that name no user: 0']);
  });

  it('the journal gets the records that the keys open, as far as they can be read, before the keys are destroyed', async () => {
    const folder = await sealedPlace();
    await archived(folder, [deliver(1, 6)]);
    const forgotten: string[] = [];
    const run = runOf([subject('user-1')], {
      leave: () => undefined,
      showSealed: async (opener) => {
        await items(folder.path, opener);
        throw new Error('made up: the rest cannot be read');
      },
      forget: async (events) => {
        expect(await seen(folder.path, await ringOf(folder.store))).not.toContain('erased');
        for (const { id, bodyHash } of events)
          forgotten.push(`${id} ${Buffer.from(bodyHash, 'latin1').toString('hex')}`);
      },
    });
    await KeyErasure.at('archive', folder.store, () => MASTER).erase(run);
    const theirs = deliver(1, 6).filter(({ event }) => event.user === 'user-1');
    const hashed = theirs.map(
      ({ event }) => `${event.id} ${createHash('sha256').update(event.body).digest('hex')}`,
    );
    expect(forgotten.toSorted()).toEqual(hashed.toSorted());
    expect(forgotten.length).toBeGreaterThan(0);
  });

  it('a crash that left records of an erased user unfinished does not stop the next start', async () => {
    const folder = await sealedPlace();
    spawnSync(process.execPath, [CHILD, 'records', folder.store, MASTER.toString('hex'), folder.path, '7']);
    const run = runOf([subject('user-1')]);
    await KeyErasure.at('archive', folder.store, () => MASTER).erase(run);
    await archived(folder, [deliver(2, 8)]);
    const found = await seen(folder.path, await ringOf(folder.store));
    expect(found.filter((id) => id === 'erased')).toHaveLength(1);
    expect(found.filter((id) => id.startsWith('msg_'))).toHaveLength(8);
    rmSync(folder.store, { recursive: true });
  });
});

it('releases its keys and its folder when it is closed while it opens, as by a reload on a slow disk', async () => {
  const { path, encrypt } = await sealedPlace();
  const { sink } = filesSink(path, { encrypt });
  const opening = sink.open();
  await sink.close(signal);
  await opening;
  const next = filesSink(path, { encrypt }).sink;
  await expect(next.open()).resolves.toBeUndefined();
  await next.close(signal);
});

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

it('a sealed archive is proven by its manifest alone, and with its keys record by record', async () => {
  const folder = await sealedPlace();
  const { path, store } = folder;
  await archived(folder, [deliver(1, 4, { headers: {} }), deliver(5, 1)], { compress: 'none' });
  const verifier = createVerifier({ scheme: 'standard-webhooks', secrets: [SECRET], tolerance: Infinity });
  expect(await verifyArchive(path, { verifier })).toMatchObject({
    records: 5,
    differences: [],
    sealed: { opened: 0, closed: 5, erased: 0 },
    signatures: { verified: 0, unmatched: 0, unsigned: 0 },
  });
  const opener = await ringOf(store);
  const opened = await verifyArchive(path, { opener, verifier });
  expect(opened).toMatchObject({
    records: 5,
    sealed: { opened: 5, closed: 0, erased: 0 },
    signatures: { unmatched: 1, unsigned: 4 },
  });
  expect(opened.differences.map(({ code, line }) => `${code}:${line}`)).toEqual(['signature_unmatched:5']);

  const file = plainFileOf(path);
  const text = readFileSync(join(path, file), 'utf8');
  const at = text.indexOf('"data":"') + 20;
  writeFileSync(join(path, file), text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1));
  expect(await differences(path, { opener })).toEqual([`record_invalid ${file}:1`, `file_changed ${file}`]);
  writeFileSync(join(path, file), text.split('\n').slice(1).join('\n'));
  expect((await differences(path)).join()).toContain('counts_differ');
});
