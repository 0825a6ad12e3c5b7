import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { compactArchive } from '../../src/archive/compact.ts';
import { Places } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { ErasureResult } from '../../src/core/erasure.ts';
import type { ObjectStore } from '../../src/core/storage.ts';
import { newMasterKey } from '../../src/privacy/seal/master-key.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { createSink } from '../../src/sinks/files/sink.ts';
import { openStore } from '../../src/storage/open.ts';
import { erasing, makeErasable } from '../privacy/erase/objects-support.ts';
import {
  eraseFrom,
  eraseNow,
  eventOf,
  find,
  folderStore,
  secretOf,
  userId,
} from '../privacy/erase/support.ts';
import { inDuckDB, load } from '../export/load/support.ts';
import { deliver, makeContext, signal, tempFolder } from '../sinks/support.ts';
import { batchOf, idsRead as idsIn, writeFiles } from '../support/archives.ts';
import { copiesOf } from '../support/copies.ts';
import { describeOnStores, storageSettings } from '../support/object-stores/emulators.ts';
import {
  ALL_IDS,
  compacted,
  compactOptions,
  filesOf,
  idsInFiles,
  idsRead,
  idsWithout,
  KINDS,
  makeTemplate,
  pathOf,
  placesOf,
  URL,
  verified,
} from './compact-support.ts';
import { millrace } from '../support/millrace.ts';
import { append, linesOf } from './forger.ts';
import { hooked, keysIn } from './store-archive.ts';

const copy = copiesOf(makeTemplate);

/** Two of the four files together have this size at most. */
const SMALL = { targetBytes: 700 };

test.each(KINDS)(
  'young files, .zst and what is not listed stay as they are, in a place of kind %s',
  async (kind) => {
    const root = await copy();
    const before = filesOf(root, kind);
    expect(await compacted(root, kind, { minAge: 3_600_000 })).toMatchObject({ made: 0 });
    const extra = 'dt=2026-11-21/not-listed.ndjson';
    mkdirSync(dirname(join(pathOf(root, kind), extra)), { recursive: true });
    writeFileSync(join(pathOf(root, kind), extra), '{"id":"made-up"}\n');
    await compacted(root, kind);
    expect(filesOf(root, kind)).toContain(extra);
    expect(filesOf(root, kind)).toHaveLength(2);
    expect(before).not.toContain(extra);
  },
);

test.each(KINDS)('a damaged file is left alone and named, in a place of kind %s', async (kind) => {
  const root = await copy();
  const [, damaged = ''] = filesOf(root, kind);
  const path = join(pathOf(root, kind), damaged);
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 20) ^ 1, bytes.length - 20);
  writeFileSync(path, bytes);
  const { reported, complete } = await compacted(root, kind);
  expect(reported).toEqual([expect.stringContaining(damaged)]);
  expect(complete).toBe(true);
  expect(filesOf(root, kind)).toHaveLength(2);
  expect(filesOf(root, kind)).toContain(damaged);
});

test.each(KINDS)(
  'a byte changed in the new file is found, and whose bytes it was, in a place of kind %s',
  async (kind) => {
    const root = await copy();
    const [first = ''] = filesOf(root, kind);
    await compacted(root, kind);
    const [file = ''] = filesOf(root, kind);
    const path = join(pathOf(root, kind), file);
    const bytes = readFileSync(path);
    bytes.writeUInt8(bytes.readUInt8(50) ^ 1, 50);
    writeFileSync(path, bytes);
    const found = (await verified(root, kind)).join('\n');
    expect(found).toContain('file_changed');
    expect(found).toContain(`compaction_differs ${file}: the bytes of ${first} in it are others`);
  },
);

test.each(KINDS)(
  'a file that another program replaces before it is removed stays, and is named, in a place of kind %s',
  async (kind) => {
    const root = await copy();
    const [first = ''] = filesOf(root, kind);
    const path = join(pathOf(root, kind), first);
    const foreign = gzipSync('{"foreign":true}\n');
    const { reported } = await compacted(root, kind, {
      onStep: (step) => {
        if (step === 'listed' && existsSync(path)) writeFileSync(path, foreign);
      },
    });
    expect(reported).toEqual([expect.stringMatching(`^${first}: another program has replaced it`)]);
    expect(readFileSync(path).equals(foreign)).toBe(true);
    expect(await idsRead(root, kind)).toEqual(ALL_IDS);
  },
);

test('an old file that somebody restores does not count, and its user does not come back', async () => {
  const root = await copy();
  const before = filesOf(root, 'folder');
  const saved = join(root, 'saved');
  cpSync(pathOf(root, 'folder'), saved, { recursive: true });
  await compacted(root, 'folder');
  await eraseFrom(root, [folderStore(pathOf(root, 'folder'))], 1);
  for (const file of before) cpSync(join(saved, file), join(pathOf(root, 'folder'), file));
  expect(await idsRead(root, 'folder')).toEqual(idsWithout(1));
  const out = inDuckDB(join(root, 'made.duckdb'));
  expect((await load(pathOf(root, 'folder'), out)).code).toBe(0);
  expect(await out.sql('SELECT count(*) FROM events')).toEqual([String(idsWithout(1).length)]);
  // One that holds other bytes than it ever did is not removed either.
  writeFileSync(join(pathOf(root, 'folder'), before[0] ?? ''), 'not what it was');
  expect((await verified(root, 'folder')).join()).toContain(`file_returned ${before[0]}`);
  const { cleared, reported } = await compacted(root, 'folder');
  expect({ cleared, problems: reported.length }).toEqual({ cleared: before.length - 1, problems: 1 });
  expect(await idsRead(root, 'folder')).toEqual(idsWithout(1));
});

test.each(KINDS)(
  'a folder of an archive, by itself, is read as it is, in a place of kind %s',
  async (kind) => {
    const root = await copy();
    await compacted(root, kind);
    const [file = ''] = filesOf(root, kind);
    const folder = file.slice(0, file.lastIndexOf('/'));
    expect(folder).toMatch(/^dt=/);
    const part = join(pathOf(root, kind), folder);
    const places = new Places(null, () => openStore(part));
    const ids = await idsIn(kind === 's3' ? `${URL}/${folder}` : part, { places });
    await places.close();
    expect(ids.toSorted()).toEqual(ALL_IDS);
  },
);

test('with an older manifest, or without one, what was joined is read, and no compaction removes it', async () => {
  const root = await copy();
  const manifest = join(pathOf(root, 'folder'), '_manifest.jsonl');
  const before = readFileSync(manifest);
  await compacted(root, 'folder');
  writeFileSync(manifest, before);
  expect(await idsRead(root, 'folder')).toEqual(ALL_IDS);
  expect((await verified(root, 'folder')).join()).toContain('file_extra');
  await compacted(root, 'folder');
  expect(await idsRead(root, 'folder')).toEqual(ALL_IDS);
  rmSync(manifest);
  expect(await idsRead(root, 'folder')).toEqual(ALL_IDS);
  const repaired = await millrace(['archive', 'verify', pathOf(root, 'folder'), '--repair']);
  expect(repaired.code).toBe(0);
  expect(await idsRead(root, 'folder')).toEqual(ALL_IDS);
  expect(await compacted(root, 'folder')).toMatchObject({ cleared: 0, problems: 0 });
  expect(idsInFiles(root, 'folder')).toEqual(ALL_IDS);
});

test('lines that somebody writes without the key take no file away', async () => {
  const root = await copy();
  const [first = '', second = ''] = filesOf(root, 'folder');
  const path = pathOf(root, 'folder');
  const line = linesOf(path).find(({ file }) => file === first) ?? {};
  const signed = { ...line, signed_by: 'A'.repeat(43), signature: 'AAAA' };
  const { previous: _, ...rest } = signed as Record<string, unknown>;
  append(path, [{ ...rest, file: second, replaces: [{ file: first, records: 4, bytes: 1, sha256: '00' }] }]);
  const ids = await idsRead(root, 'folder');
  expect(ids).toEqual(ALL_IDS);
  expect((await verified(root, 'folder')).join()).toContain('line_forged');
  await expect(compacted(root, 'folder')).rejects.toThrow('its manifest is damaged');
});

test('a part that a crash left beside its closed file keeps that file as it is', async () => {
  const root = await copy();
  const [first = ''] = filesOf(root, 'folder');
  const part = join(pathOf(root, 'folder'), '_open/0123456789ab', first.replace(/\.ndjson.*$/, '.part'));
  mkdirSync(dirname(part), { recursive: true });
  appendFileSync(part, 'made up\n');
  await compacted(root, 'folder');
  expect(filesOf(root, 'folder')).toContain(first);
});

test('an interruption, or a fault of this program, is not reported as one of the disk', async () => {
  const stop = new AbortController();
  const stopped = compacted(await copy(), 'folder', {
    signal: stop.signal,
    onStep: (step) => step === 'read' && stop.abort(),
  });
  const ended = await stopped.then(({ complete }) => (complete ? 'complete' : 'not complete'), messageOf);
  expect(ended).not.toMatch(/^complete|disk|cannot be written/);
  const ours = new TypeError('made up');
  const faulty = compacted(await copy(), 'folder', {
    onStep: () => {
      throw ours;
    },
  });
  await expect(faulty).rejects.toBe(ours);
});

test('load: what was loaded before is the same still, and goes with its user', async () => {
  const root = await copy();
  const database = inDuckDB(join(root, 'made.duckdb'));
  const path = pathOf(root, 'folder');
  const count = async (): Promise<string[]> => database.sql('SELECT count(*) FROM events');
  await load(path, database);
  await compacted(root, 'folder', SMALL);
  expect((await load(path, database)).summary).toMatchObject({ files: 0, missing: 0, replaced: 0 });
  await writeFiles(path, [batchOf(eventOf(5, 1, { headers: {} }))]);
  await compacted(root, 'folder', { targetBytes: 2 ** 20 });
  expect((await load(path, database)).summary).toMatchObject({ files: 1, missing: 0, duplicates: 0 });
  expect(await count()).toEqual([String(ALL_IDS.length + 1)]);
  await eraseFrom(root, [folderStore(path)], 1);
  expect((await load(path, database)).code).toBe(0);
  expect(await count()).toEqual([String(idsWithout(1).length + 1)]);
  expect(await database.sql(`SELECT count(*) FROM events WHERE user_id = '${userId(1)}'`)).toEqual(['0']);
});

test('a sealed archive is joined without its keys', async () => {
  const root = tempFolder();
  const path = pathOf(root, 'folder');
  const encrypt = { store: tempFolder(), masterKey: newMasterKey() };
  const batches = [1, 6, 11].map((from) => deliver(from, 5, { headers: {} }));
  await writeFiles(path, batches, { options: { encrypt, rotate: { bytes: 1024 } } });
  expect(await compacted(root, 'folder')).toMatchObject({ made: 1, problems: 0 });
  expect(await verifyArchive(path)).toMatchObject({
    files: 1,
    records: 15,
    differences: [],
    sealed: { closed: 15 },
  });
});

test.each(KINDS)('of two at once, in a place of kind %s, one compacts', async (kind) => {
  const root = await copy();
  const both = await Promise.allSettled([compacted(root, kind), compacted(root, kind)]);
  const refused = both.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
  // One may begin when the other is done.
  for (const reason of refused) expect(reason).toMatch(/is being (?:written|compacted) by|another process/);
  expect(refused.length).toBeLessThan(2);
  expect(idsInFiles(root, kind)).toEqual(ALL_IDS);
  expect(await verified(root, kind)).toEqual([]);
});

test.each([
  ['compacted-', SMALL.targetBytes, 'has taken over'],
  ['compacted-', 2 ** 20, 'has taken over'],
  ['_manifest/', SMALL.targetBytes, 'another process has written'],
  // The very same line: whose it is makes no difference.
  ['_manifest/', 2 ** 20, null],
])(
  'who stands still before it puts %s, while another compacts to %i bytes: one of them counts',
  async (at, targetBytes, said) => {
    const root = await copy();
    let overtaken = false;
    const places = placesOf(root, async (request, key) => {
      if (overtaken || request !== 'putIfAbsent' || !key.includes(at)) return;
      overtaken = true;
      rmSync(join(root, 'store', '_open', 'compaction.json'));
      await compacted(root, 's3', { targetBytes });
    });
    const ended = await compacted(root, 's3', { places }).then(() => null, String);
    expect(overtaken).toBe(true);
    expect(ended).toEqual(said === null ? null : expect.stringContaining(said));
    expect(await idsRead(root, 's3')).toEqual(ALL_IDS);
    expect(await verified(root, 's3')).toEqual([]);
    await compacted(root, 's3');
    expect(idsInFiles(root, 's3')).toEqual(ALL_IDS);
  },
);

function eraseWith(root: string, wrap?: (store: ObjectStore) => ObjectStore): Promise<ErasureResult> {
  return eraseNow(erasing(join(root, 'erasure'), join(root, 'store'), {}, wrap), 1);
}

async function expectGone(root: string, ids = idsWithout(1)): Promise<void> {
  expect(find([join(root, 'store')], [userId(1), secretOf(1)])).toEqual([]);
  expect(await idsRead(root, 's3')).toEqual(ids);
  expect(await verified(root, 's3')).toEqual([]);
}

test('an erasure waits for a compaction of the store, and says so', async () => {
  const root = await copy();
  let during: ErasureResult | null = null;
  const places = placesOf(root, async (request, key) => {
    if (during !== null || request !== 'putIfAbsent' || !key.includes('compacted-')) return;
    during = await eraseWith(root);
  });
  await compacted(root, 's3', { places });
  expect(JSON.stringify(during)).toContain('was being compacted by');
  expect((await eraseWith(root)).left).toEqual([]);
  await expectGone(root);
});

test('a compaction that begins and ends while an erasure runs restores no user', async () => {
  const root = await copy();
  let overtaken = false;
  const { left } = await eraseWith(root, (store) =>
    hooked(store, async (verb) => {
      if (verb !== 'putIfMatch' || overtaken) return;
      overtaken = true;
      await compacted(root, 's3');
    }),
  );
  expect(overtaken).toBe(true);
  expect(left).toEqual([]);
  await expectGone(root);
});

test('a compaction that joins newer files, and ends before the erasure does, restores no user', async () => {
  const root = await copy();
  const reached = Promise.withResolvers<void>();
  const replaced = Promise.withResolvers<void>();
  // It has read the new object and looked at it again, and stands still in front of its line.
  const places = placesOf(root, async (request, key) => {
    if (request !== 'putIfAbsent' || !key.startsWith('_manifest/000000000000/')) return;
    reached.resolve();
    await replaced.promise;
  });
  let lists = 0;
  let compacting: Promise<unknown> | null = null;
  const ended = async (): Promise<void> => {
    replaced.resolve();
    await compacting;
  };
  const { left } = await eraseWith(root, (store) =>
    hooked(store, async (verb, key) => {
      if (verb === 'list' && key === '') {
        lists += 1;
        if (lists === SECOND_LOOK) await putMore(root);
        if (lists > SECOND_LOOK) await ended();
      } else if (verb === 'putIfMatch' && lists === SECOND_LOOK && compacting === null) {
        compacting = compacted(root, 's3', { places });
        await reached.promise;
        // The last look of an erasure is whether anybody compacts.
      } else if (verb === 'head' && key === '_open/compaction.json' && compacting !== null) await ended();
    }),
  );
  expect(compacting).not.toBeNull();
  expect(left).toEqual([]);
  await expectGone(root, [...idsWithout(1), 'msg_2_8'].toSorted());
});

/** Lists that an erasure has made by its second look: one to begin with, and one for each look. */
const SECOND_LOOK = 3;

/** What another receiver puts. */
async function putMore(root: string): Promise<void> {
  const store = await openStore(join(root, 'store'));
  const context = { ...makeContext(), openStore: () => Promise.resolve(store) };
  const sink = createSink(parseOptions({ path: URL, spool: 'none' }), context);
  await sink.open(signal);
  await sink.send(batchOf(...[1, 2].map((user) => eventOf(user, 8, { headers: {} }))), signal);
  await sink.close(signal);
}

test('an erasure that finds a killed compaction at its end looks again', async () => {
  const root = await copy();
  let written = false;
  const { left } = await eraseWith(root, (store) =>
    hooked(store, async (verb) => {
      if (verb !== 'putIfMatch' || written) return;
      written = true;
      const dead = spawnSync('true').pid;
      const bytes = Buffer.from(JSON.stringify({ host: hostname(), process: dead }));
      await store.putIfAbsent('_open/compaction.json', { bytes });
    }),
  );
  expect(JSON.stringify(left)).toContain('a process that was killed');
  expect((await eraseWith(root)).left).toEqual([]);
  expect(await idsRead(root, 's3')).toEqual(idsWithout(1));
});

test('an erasure that is done while a file is put: what was put goes again', async () => {
  const root = await copy();
  let erased = false;
  const places = placesOf(root, async (request, key) => {
    if (erased || request !== 'putIfAbsent' || !key.includes('compacted-')) return;
    erased = true;
    // As after ten minutes of standing still.
    rmSync(join(root, 'store', '_open', 'compaction.json'));
    expect((await eraseWith(root)).left).toEqual([]);
  });
  const ended = await compacted(root, 's3', { places }).catch(String);
  expect(ended).toContain('has taken over');
  expect(await idsRead(root, 's3')).toEqual(idsWithout(1));
  expect(find([join(root, 'store')], [userId(1), secretOf(1)])).toEqual([]);
});

describeOnStores(' compacts', async (emulator) => {
  const bucket = await emulator.bucket('compacted');
  const settings = storageSettings(emulator.settings());

  test('ended at each step, then done: each id once, proven, erased', async () => {
    for (const at of ['put', 'listed', 'removed'] as const) {
      const url = `${bucket}/${at}`;
      const store = await openStore(url, settings);
      await makeErasable(store, tempFolder());
      const places = () => new Places(settings);
      const readIds = async () => (await idsIn(url, { places: places() })).toSorted();
      const compactIt = (onStep: (step: string) => void = () => undefined) =>
        compactArchive(url, {
          ...compactOptions(places()),
          now: Date.now() + 60_000,
          onProblem: (file, reason) => expect.unreachable(`${file}: ${reason}`),
          onStep,
        });
      const ended = await compactIt((step) => {
        if (step === at) throw new Error('ended here');
      }).catch(String);
      expect(ended).toContain('ended here');
      expect(await readIds()).toEqual(ALL_IDS);
      expect((await verifyArchive(url, { places: places() })).differences).toEqual([]);
      expect(await compactIt()).toMatchObject({ complete: true, problems: 0 });
      expect(await readIds()).toEqual(ALL_IDS);
      const erasures = erasing(tempFolder(), () => openStore(url, settings));
      expect((await eraseNow(erasures, 1)).left).toEqual([]);
      expect(await readIds()).toEqual(idsWithout(1));
      expect((await verifyArchive(url, { places: places() })).differences).toEqual([]);
      expect((await keysIn(store)).filter((key) => key.includes('.ndjson'))).toHaveLength(1);
      await store.close();
    }
  });
});
