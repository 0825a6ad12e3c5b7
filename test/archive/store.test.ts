import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import { readArchive } from '../../src/archive/read.ts';
import type { RepairOptions } from '../../src/archive/repair-plan.ts';
import { repairArchive } from '../../src/archive/repair.ts';
import type { VerifyReport } from '../../src/archive/report.ts';
import { verifyArchive, type VerifyOptions } from '../../src/archive/verify.ts';
import type { Proof } from '../../src/core/proof.ts';
import { StorageError, type ObjectStore } from '../../src/core/storage.ts';
import { openStore } from '../../src/storage/open.ts';
import { copiesOf } from '../support/copies.ts';
import { temporaryFolder } from '../support/folders.ts';
import { differences as differencesOf } from './support.ts';
import {
  chained,
  compact,
  hooked,
  keysIn,
  makeStoreArchive,
  newSigner,
  overwrite,
  put,
  read,
  segmentName,
  WRITERS,
} from './store-archive.ts';

const URL = 's3://made-up/archive';
const [A, B] = WRITERS;

interface Held {
  readonly store: ObjectStore;
  newPlaces(): Places;
  /** Of each writer. */
  readonly files: readonly (readonly string[])[];
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** Each difference as `code file:line`. */
  differences(options?: VerifyOptions): Promise<string[]>;
}

let ofWriters: Held['files'] = [];
const copy = copiesOf(async (path) => {
  ofWriters = await makeStoreArchive(await openStore(path));
});

/** An archive of its own. */
async function held(): Promise<Held> {
  const path = await copy();
  const store = await openStore(path);
  const newPlaces = (): Places => new Places(null, (url) => openStore(join(path, url.slice(URL.length))));
  const verify: Held['verify'] = (more) => verifyArchive(URL, { places: newPlaces(), ...more });
  const differences: Held['differences'] = (more) => differencesOf(URL, { places: newPlaces(), ...more });
  return { store, newPlaces, files: ofWriters, verify, differences };
}

const items = (places: Places, url = URL) => Array.fromAsync(readArchive(url, { places }));

/** Unlisted: the records of one file under other ids, and a torn file. */
async function withUnlisted() {
  const made = await held();
  const records = gunzipSync(await read(made.store, made.files[0]?.[0] ?? '')).toString();
  const file = 'dt=2026-11-21/unlisted.ndjson.gz';
  await put(made.store, file, gzipSync(records.replaceAll('"id":"', '"id":"other_')));
  await put(made.store, 'dt=2026-11-21/torn.ndjson.gz', gzipSync(records).subarray(0, -20));
  const repair = async (options: Partial<RepairOptions> = {}) => {
    const now = Date.now() + 3_600_000;
    const all = { places: made.newPlaces(), dryRun: false, now, onAction: () => undefined, ...options };
    return repairArchive(URL, all);
  };
  return { ...made, file, repair };
}

test('a file of a folder that cannot be looked at is not taken for a missing one', async () => {
  const folder = await temporaryFolder();
  mkdirSync(join(folder, 'dt=2026-11-21'));
  writeFileSync(join(folder, 'a.ndjson'), '');
  for (const name of ['link', 'loop'])
    symlinkSync(join(folder, name === 'loop' ? name : 'a.ndjson'), join(folder, name));
  const places = new Places();
  const found = ['missing.ndjson', 'a.ndjson/b.ndjson', 'dt=2026-11-21', 'link'].map((file) =>
    places.at(folder).stat(file),
  );
  expect(await Promise.all(found)).toEqual([null, null, null, null]);
  await expect(places.at(join(folder, 'loop')).stat('a.ndjson')).rejects.toMatchObject({ code: 'ELOOP' });
});

describe('--repair of an archive in a store', () => {
  test('lists what is whole, in a chain of its own, once', async () => {
    const { store, file, repair, differences } = await withUnlisted();
    const before = await keysIn(store);
    const dry = await repair({ dryRun: true });
    expect(dry.actions).toMatchObject([{ action: 'list_file', file }]);
    expect(await keysIn(store)).toEqual(before);
    const { actions, young, after } = await repair();
    expect([actions.length, young]).toEqual([1, []]);
    expect(after.differences.map(({ file: wrong }) => wrong)).not.toContain(file);
    expect(await differences()).toEqual(
      ['file_unreadable', 'file_extra'].map((code) => `${code} dt=2026-11-21/torn.ndjson.gz`),
    );
    const added = (await keysIn(store)).filter((key) => !before.includes(key));
    expect(added).toEqual([expect.stringMatching(/^_manifest\/[0-9a-f]{12}\/0000000001-0000000001\.jsonl$/)]);
    const line = JSON.parse((await read(store, added[0] ?? '')).toString()) as object;
    expect(line).toMatchObject({ file, records: 5, repaired_at: expect.any(String) as string });
    expect((await repair()).actions).toEqual([]);
  });

  test('leaves to its writer what is young', async () => {
    const { store, file, repair } = await withUnlisted();
    const before = await keysIn(store);
    expect(await repair({ now: Date.now() })).toMatchObject({ actions: [], young: [file] });
    expect(await keysIn(store)).toEqual(before);
  });

  test('signs what it lists, and does nothing to a signed manifest without a key', async () => {
    const { store, repair, file } = await withUnlisted();
    const signer = newSigner();
    const noted: string[] = [];
    const before = await keysIn(store);
    const heads = { of: () => null, note: (root: string) => Promise.resolve(void noted.push(root)) };
    const proof = () => Promise.resolve({ signer, heads, logHead: () => null } as unknown as Proof);
    await repair({ proof });
    const key = (await keysIn(store)).find((each) => !before.includes(each)) ?? '';
    expect(JSON.parse((await read(store, key)).toString())).toMatchObject({
      file,
      signed_by: signer.publicKey,
    });
    expect(noted).toEqual([expect.stringMatching(new RegExp(`/${key.split('/').slice(0, 2).join('/')}$`))]);
    const second = gunzipSync(await read(store, file))
      .toString()
      .replaceAll('"id":"', '"id":"again_');
    await put(store, 'dt=2026-11-21/second.ndjson', second);
    await expect(repair()).rejects.toThrow('needs the key from --config');
  });
});

describe('an archive in a store', () => {
  test('is read and verified like a folder, with the chain of each writer', async () => {
    const { verify, newPlaces, files } = await held();
    const report = await verify();
    expect(report).toMatchObject({ path: URL, files: 6, records: 30, differences: [] });
    expect(report.manifest).toMatchObject({
      lines: 6,
      head: '',
      writers: [
        { writer: A, lines: 3 },
        { writer: B, lines: 3 },
      ],
    });
    const records = await items(newPlaces());
    expect(records.map(({ kind }) => kind)).toEqual(Array.from({ length: 30 }, () => 'record'));
    expect(new Set(records.map(({ file }) => file))).toEqual(new Set(files.flat()));
  });

  test('one object of it can be read by its URL', async () => {
    const { newPlaces, files } = await held();
    const [file = ''] = files[0] ?? [];
    expect(await items(newPlaces(), `${URL}/${file}`)).toHaveLength(5);
  });

  test('nothing below a prefix is an error, and so is a URL of another kind', async () => {
    const store = await openStore(join(await temporaryFolder(), 'store'));
    const places = new Places(null, () => Promise.resolve(store));
    await expect(verifyArchive(URL, { places })).rejects.toMatchObject({
      code: 'archive_unreadable',
      message: expect.stringContaining(URL) as string,
    });
    await expect(verifyArchive('ftp://made-up/archive', { places })).rejects.toMatchObject({ code: 'usage' });
  });

  test.each([true, false])(
    'a compacted chain is the same chain, with the small objects removed: %s',
    async (removed) => {
      const { store, verify } = await held();
      const before = await verify();
      await compact(store, A, removed);
      expect(await keysIn(store, `_manifest/${A}/`)).toHaveLength(removed ? 1 : 4);
      const after = await verify();
      expect([after.differences, after.manifest]).toEqual([[], before.manifest]);
    },
  );

  test('a file in a folder that a store was copied to is verified by the same chains', async () => {
    const path = join(await temporaryFolder(), 'copy');
    await makeStoreArchive(await openStore(path));
    expect(await verifyArchive(path)).toMatchObject({ files: 6, differences: [] });
  });
});

describe('what somebody with the store has done to it is named', () => {
  test('an object deleted, one overwritten, one added, one restored from before', async () => {
    const { store, files, differences, verify } = await held();
    const [[deleted = '', changed = '', copied = '']] = files as [string[]];
    const bytes = await read(store, copied);
    await store.delete(deleted);
    await overwrite(store, changed, Buffer.concat([bytes, bytes])); // A shorter one would count as truncated.
    await put(store, 'dt=2026-11-21/extra.ndjson.gz', bytes);
    expect(await differences()).toEqual(
      expect.arrayContaining([
        `file_missing ${deleted}`,
        `file_changed ${changed}`,
        'file_extra dt=2026-11-21/extra.ndjson.gz',
      ]) as string[],
    );
    expect((await verify()).differences.find(({ code }) => code === 'file_missing')?.detail).toContain(
      'lifecycle',
    );
  });

  test('a segment in the middle removed: the lines that are missing are named, and their files', async () => {
    const { store, files, differences } = await held();
    await store.delete(segmentName(A, 2, 2));
    expect(await differences()).toEqual([
      `segment_missing _manifest/${A}`,
      `chain_broken ${segmentName(A, 3, 3)}:3`,
      `file_extra ${files[0]?.[1] ?? ''}`,
    ]);
  });

  test('the last segment removed: the head that was noted is missing', async () => {
    const { store, files, verify, differences } = await held();
    const head = (await verify()).manifest.writers?.[1]?.head ?? '';
    await store.delete(segmentName(B, 3, 3));
    expect(await differences({ heads: [{ head, where: 'heads/made-up.json' }] })).toEqual([
      'head_missing _manifest.jsonl',
      `file_extra ${files[1]?.[2] ?? ''}`,
    ]);
  });

  test('an older segment restored with other bytes beside the one that covers it', async () => {
    const { store, differences } = await held();
    const line = (await read(store, segmentName(A, 2, 2))).toString();
    await compact(store, A);
    await put(store, segmentName(A, 2, 2), line);
    expect(await differences()).toEqual([]);
    await overwrite(store, segmentName(A, 2, 2), line.replace('"records":5', '"records":4'));
    expect(await differences()).toEqual([`segment_differs ${segmentName(A, 2, 2)}:2`]);
  });

  test('segments that overlap, and one that holds fewer lines than its name says', async () => {
    const { store, differences } = await held();
    const [two, three] = [await read(store, segmentName(A, 2, 2)), await read(store, segmentName(A, 3, 3))];
    await store.delete(segmentName(A, 3, 3));
    await put(store, segmentName(A, 2, 3), Buffer.concat([two, three]));
    await put(store, segmentName(A, 3, 4), three);
    expect(await differences()).toEqual([
      `segment_differs ${segmentName(A, 3, 4)}`,
      `segment_differs ${segmentName(A, 3, 4)}`,
    ]);
  });

  test('a changed line, and a copy of a chain under another name', async () => {
    const { store, differences } = await held();
    const [first] = chained([{ file: 'x.ndjson' }]);
    await put(store, segmentName('0000000000ff', 1, 1), await read(store, segmentName(B, 1, 1)));
    const key = segmentName(A, 2, 2);
    await overwrite(store, key, (await read(store, key)).toString().replace('"records":5', '"records":6'));
    const found = await differences();
    expect(found).toContain(`chain_broken ${segmentName(A, 3, 3)}:3`);
    expect(found).toContain('line_forged _manifest/0000000000ff');
    expect(first).toContain('x.ndjson');
  });
});

describe('a store that cannot be asked', () => {
  const faults = ['no_place', 'denied', 'busy', 'unreachable'] as const;

  test.each(faults)('%s ends the command with what to do, and is no difference', async (fault) => {
    const { store } = await held();
    const failing = hooked(store, (verb, key) => {
      if (verb === 'get') throw new StorageError(fault, `${URL}/${key}: made-up reason`);
    });
    const places = new Places(null, () => Promise.resolve(failing));
    await expect(verifyArchive(URL, { places })).rejects.toMatchObject({
      code: 'store_unreadable',
      message: expect.stringMatching(/s3:\/\/made-up\/archive\/.*made-up reason: \w+/) as string,
    });
  });

  test('an object that is removed while it is read is one difference; the rest is read', async () => {
    const { store, files } = await held();
    const [[gone = '']] = files as [string[]];
    const racing = hooked(store, (verb, key) => {
      if (verb === 'get' && key === gone) throw new StorageError('missing', `${URL}/${key}: not there`);
    });
    const report = await verifyArchive(URL, { places: new Places(null, () => Promise.resolve(racing)) });
    expect(report.differences.map(({ code, file }) => [code, file])).toEqual([['file_unreadable', gone]]);
    expect(report.records).toBe(25);
  });
});
