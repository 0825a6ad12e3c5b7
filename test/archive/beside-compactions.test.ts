import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fileLines } from '../../src/archive/file-lines.ts';
import type { Places } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { readArchiveFolder } from '../../src/export/load/archives.ts';
import { countFiles } from '../../src/replay/reconcile/count-files.ts';
import { listSources } from '../../src/export/sources.ts';
import { listPath } from '../../src/replay/list.ts';
import { openStore } from '../../src/storage/open.ts';
import { erasing } from '../privacy/erase/objects-support.ts';
import { eraseNow, eventOf } from '../privacy/erase/support.ts';
import { ALL, idsOf, listing, readerOf, readUnits, unitsOf } from '../replay/support.ts';
import { storeSink } from '../sinks/store-support.ts';
import { signal } from '../sinks/support.ts';
import { batchOf, idsRead } from '../support/archives.ts';
import { copiesOf } from '../support/copies.ts';
import {
  ALL_IDS,
  compacted,
  KINDS,
  makeTemplate,
  nameOf,
  placesOf as placesIn,
  URL,
} from './compact-support.ts';
import { WRITERS } from './store-archive.ts';

const COMPACTIONS = 4;

const archive = copiesOf(makeTemplate);

/** The same, closed when the test ends. */
function placesOf(...given: Parameters<typeof placesIn>): Places {
  const places = placesIn(...given);
  onTestFinished(() => places.close());
  return places;
}

/**
 * Places in which, before each request of a reader, a receiver has put one more file and a compaction has joined all there is: the least
 * of quiet that a reader can find.
 */
function restless(root: string): { places: Places; more: () => number } {
  let more = 0;
  let isBusy = false;
  const turn = async (): Promise<void> => {
    if (isBusy || more === COMPACTIONS) return;
    isBusy = true;
    more += 1;
    const { sink } = storeSink(await openStore(join(root, 'store')), join(root, 'spool'));
    await sink.open();
    await sink.send(batchOf(eventOf(9, more, { headers: {} })), signal);
    await sink.close(signal);
    await compacted(root, 's3');
    isBusy = false;
  };
  return { places: placesOf(root, turn), more: () => more };
}

interface Problems {
  readonly problems: readonly { readonly file: string; readonly reason: string }[];
}

const problemTexts = ({ problems }: Problems): string[] =>
  problems.map(({ file, reason }) => `${file}: ${reason}`);

async function idsIn(
  places: Places,
  files: readonly { readonly root: string; readonly file: string }[],
): Promise<string[]> {
  const ids: string[] = [];
  for (const { root, file } of files)
    for await (const lines of fileLines(places.at(root), file))
      for (const { bytes } of lines) ids.push((JSON.parse(String(bytes)) as { id: string }).id);
  return ids;
}

const READERS: Readonly<Record<string, (places: Places) => Promise<string[]>>> = {
  read: (places) => idsRead(URL, { places, parts: true }),
  replay: async (places) => idsOf(await readUnits(await unitsOf(URL, listing(places)), readerOf({ places }))),
  reconcile: async (places) => {
    const ids: string[] = [];
    const window = { since: 0, until: Number.POSITIVE_INFINITY };
    const onRecord = ({ record }: { record: { id: string } }): void => void ids.push(record.id);
    return [...problemTexts(await countFiles(URL, window, { places, signal, onRecord })), ...ids];
  },
  export: async (places) => {
    const found = await listSources([URL], places, { ...ALL, since: null, until: null }, () => true);
    return [...problemTexts(found), ...(await idsIn(places, found.sources))];
  },
  load: async (places) => {
    const found = await readArchiveFolder(URL, places);
    return [...problemTexts(found), ...(await idsIn(places, found.files))];
  },
};

test.each(Object.entries(READERS))(
  '%s while compactions follow each other: no event is lost or read twice',
  async (_, read) => {
    const { places, more } = restless(await archive());
    const ids = await read(places);
    expect(more()).toBeGreaterThan(0);
    // Of what was there when it began, each once, and nothing else but what came later.
    expect(ids.filter((id) => !id.startsWith('msg_9_')).toSorted()).toEqual(ALL_IDS.toSorted());
    expect(new Set(ids).size).toBe(ids.length);
  },
);

test.each(KINDS)(
  '%s: a replay whose list is being made continues with files that a compaction has joined',
  async (kind) => {
    const root = await archive();
    const units = listPath(nameOf(root, kind), listing(placesOf(root)));
    const first = await units.next();
    expect((await compacted(root, kind)).made).toBe(1);
    const all = [first.value as object, ...(await Array.fromAsync(units))];
    expect(all.filter((unit) => !('file' in unit))).toEqual([]);
  },
);

test('verify while compactions follow each other: all is as it should be', async () => {
  const { places, more } = restless(await archive());
  const { differences } = await verifyArchive(URL, { places });
  expect(more()).toBeGreaterThan(0);
  expect(differences).toEqual([]);
});

test('verify names no file as extra that is listed while it reads, or whose user is erased then', async () => {
  const root = await archive();
  const segments = join(root, 'store', '_manifest', WRITERS[0]);
  const last = readdirSync(segments).toSorted().at(-1) ?? '';
  renameSync(join(segments, last), join(root, last));
  /** What it finds when something is done before it reads the first file of records. */
  const codes = async (done: () => unknown): Promise<string[]> => {
    let isDone = false;
    const places = placesOf(root, async (verb, key) => {
      if (verb !== 'get' || !key.startsWith('dt=') || isDone) return;
      isDone = true;
      await done();
    });
    return (await verifyArchive(URL, { places })).differences.map(({ code }) => code);
  };
  expect(await codes(() => undefined)).toEqual(['file_extra']);
  expect(await codes(() => renameSync(join(root, last), join(segments, last)))).toEqual([]);
  const erasures = erasing(join(root, 'erasure'), join(root, 'store'));
  expect(await codes(() => eraseNow(erasures, 1))).toEqual([]);
});
