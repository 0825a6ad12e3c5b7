import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import { MANIFEST } from '../../src/core/archive.ts';
import { formatManifestLine } from '../../src/core/archive-manifest.ts';
import type { Selection } from '../../src/replay/selection.ts';
import { openStore } from '../../src/storage/open.ts';
import { layOut } from '../archive/store-archive.ts';
import { makeArchive } from '../archive/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeArchive } from './made-up-archive.ts';
import { hashLine } from '../../src/lib/chained-log.ts';
import { filesOf, listing, unitsOf } from './support.ts';

/** Three files of 60 events, one an hour, and a manifest of them; the last one sealed, to go by what it says. */
async function listedArchive() {
  const folder = await temporaryFolder();
  const events = writeArchive(folder, { files: 3, each: 60, only: 'ndjson' });
  let previous = hashLine('');
  for (let file = 0; file < 3; file += 1) {
    const own = events.slice(file * 60, file * 60 + 60);
    const name = `000${file}.ndjson`;
    const line = formatManifestLine(
      {
        file: name,
        records: 60,
        bytes: readFileSync(join(folder, name)).length,
        sha256: '0'.repeat(64),
        first_received_at: new Date(own[0]!.receivedAt).toISOString(),
        last_received_at: new Date(own[59]!.receivedAt).toISOString(),
        types: file === 2 ? { sealed: 60 } : { [`made.up.${file}`]: 60 },
      },
      previous,
    );
    appendFileSync(join(folder, MANIFEST), `${line}\n`);
    previous = hashLine(line);
  }
  const start = events[0]!.receivedAt;
  const listed = async (selection: Partial<Selection>): Promise<{ files: string[]; passed: number }> => {
    const result = { files: [] as string[], passed: 0 };
    const onPassedOver = (_: string, files: number): void => void (result.passed = files);
    const units = await unitsOf(folder, { ...listing(undefined, selection), onPassedOver });
    result.files.push(...filesOf(units).map(({ file }) => file));
    return result;
  };
  return { folder, listed, start };
}

const HOUR = 3_600_000;

test('files that hold nothing of the selection, by the manifest, are not opened', async () => {
  const { listed, start } = await listedArchive();
  const [one, two, three] = ['0000.ndjson', '0001.ndjson', '0002.ndjson'];
  expect(await listed({})).toEqual({ files: [one, two, three], passed: 0 });
  expect(await listed({ users: ['unknown'] })).toEqual({ files: [one, two, three], passed: 0 });
  expect(await listed({ since: start + HOUR })).toEqual({ files: [two, three], passed: 1 });
  expect(await listed({ since: start + HOUR - 60_000, until: start + HOUR })).toEqual({
    files: [one],
    passed: 2,
  });
  expect(await listed({ until: start + HOUR + 1 })).toEqual({ files: [one, two], passed: 1 });
  // What is sealed can be of any type.
  expect(await listed({ types: ['made.up.0', 'other'] })).toEqual({ files: [one, three], passed: 1 });
});

test('a manifest that is not sound, and an entry of another size, are not believed', async () => {
  const { folder, listed, start } = await listedArchive();
  appendFileSync(join(folder, '0000.ndjson'), '{}\n');
  expect((await listed({ since: start + 2 * HOUR })).files).toEqual(['0000.ndjson', '0002.ndjson']);
  const manifest = join(folder, MANIFEST);
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('made.up.1', 'made.up.X'));
  expect((await listed({ since: start + 2 * HOUR })).files).toHaveLength(3);
});

/** An archive of three files, and the same in a store; both lack the second one. */
async function lackingArchives() {
  const made = await makeArchive();
  const [first = '', second = '', third = ''] = made.files;
  const folder = await temporaryFolder();
  const store = await openStore(folder);
  await layOut(store, made);
  rmSync(join(made.path, second));
  await store.delete(second);
  const url = 's3://made-up/archive';
  return {
    places: { folder: made.path, store: url },
    listed: { first, second, third },
    listing: (some: Partial<Selection> = {}) => listing(new Places(null, () => openStore(folder)), some),
  };
}

test.each(['folder', 'store'] as const)(
  'a file that the manifest of a %s lists and that is not there is named, and the rest is read',
  async (where) => {
    const { places, listed, listing: of } = await lackingArchives();
    const units = await unitsOf(places[where], of());
    expect(filesOf(units).map(({ file }) => file)).toEqual([listed.first, listed.third].toSorted());
    expect(units.filter(({ kind }) => kind === 'unreadable')).toEqual([
      {
        kind: 'unreadable',
        where: `${places[where]}/${listed.second}`,
        reason: 'file_missing: listed in the manifest, but missing',
      },
    ]);
    const none = await unitsOf(places[where], of({ types: ['of.nothing.'] }));
    expect(none).toEqual([]);
  },
);

test.each(['folder', 'store'] as const)(
  'other files in a %s are read, and archives among them once',
  async (where) => {
    const folder = await temporaryFolder();
    const store = await openStore(folder);
    const keys = [
      'a/_manifest.jsonl',
      'a/b/_manifest.jsonl',
      'a/b/one.ndjson',
      'a/claim-checks/t/2026-11-21/2026-11-21T100000.000Z#a.b#msg_1.json',
      'a/two.ndjson',
      'c/_open/0123456789ab/three.part',
      'other.json',
      'other.txt',
    ];
    for (const key of keys) await store.putIfAbsent(key, { bytes: Buffer.from('') });
    const url = 's3://made-up/archive';
    const places = new Places(null, (at) => openStore(join(folder, at.slice(url.length))));
    const units = await unitsOf(where === 'folder' ? folder : url, listing(places));
    const root = where === 'folder' ? folder : url;
    expect(filesOf(units).map((unit) => `${unit.root}/${unit.file}`)).toEqual(
      ['a/b/one.ndjson', 'a/two.ndjson', 'c/_open/0123456789ab/three.part', 'other.json'].map(
        (file) => `${root}/${file}`,
      ),
    );
  },
);

test('a file that an erasure removed is not missing', async () => {
  const { folder, listed } = await listedArchive();
  const [one, two, three] = ['0000.ndjson', '0001.ndjson', '0002.ndjson'];
  rmSync(join(folder, two));
  const lines = readFileSync(join(folder, MANIFEST), 'utf8').trimEnd().split('\n');
  const none = { records: 0, bytes: 0, sha256: null, first_received_at: null, last_received_at: null };
  const erased = { erasure: 'made-up', at: '2026-11-20T00:00:00.000Z', file: two, removed: 60, ...none };
  const line = formatManifestLine({ ...erased, types: {} }, hashLine(lines.at(-1) ?? ''));
  appendFileSync(join(folder, MANIFEST), `${line}\n`);
  expect((await listed({})).files).toEqual([one, three]);
  expect(await unitsOf(folder)).toHaveLength(2);
});
