import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fileLines } from '../../src/archive/file-lines.ts';
import { Places } from '../../src/archive/places.ts';
import { readArchive } from '../../src/archive/read.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import type { ObjectStore } from '../../src/core/storage.ts';
import { readArchiveFolder } from '../../src/load/archives.ts';
import { countFiles } from '../../src/reconcile/count-files.ts';
import { listSources } from '../../src/export/sources.ts';
import { listPath } from '../../src/replay/list.ts';
import { FileReader } from '../../src/replay/read-file.ts';
import { openStore } from '../../src/storage/open.ts';
import { createValidator, DEFAULT_ENVELOPE } from '../../src/validate/envelope.ts';
import { erasing } from '../erase/objects-support.ts';
import { eventOf, userId } from '../erase/support.ts';
import { storeSink } from '../sinks/store-support.ts';
import { WRITERS } from './store-archive.ts';
import { signal, tempFolder } from '../sinks/support.ts';
import {
  ALL_IDS,
  compacted,
  copyOf,
  KINDS,
  makeTemplate,
  nameOf,
  placesOf,
  URL,
  type Kind,
} from './compact-support.ts';

const ALL = { types: [], teams: [], users: [], since: null, until: null };
const takesAll = (): boolean => true;
const validate = createValidator({ ...DEFAULT_ENVELOPE, userIds: 'text', require: [] });

async function archive(): Promise<string> {
  const base = tempFolder();
  await makeTemplate(base);
  return copyOf(base, tempFolder());
}

/**
 * Places in which, before each request of a reader, a receiver has put one more file and a compaction has joined all there is: the least
 * of quiet that a reader can find.
 */
function restless(root: string, rounds: number): { places: Places; more: () => number } {
  let left = rounds;
  let isBusy = false;
  const turn = async (): Promise<void> => {
    if (isBusy || left === 0) return;
    isBusy = true;
    left -= 1;
    const store = await openStore(join(root, 'store'));
    const { sink } = storeSink(store, join(root, 'spool'));
    await sink.open();
    await sink.send([{ event: eventOf(9, rounds - left, { headers: {} }), destination: null }], signal);
    await sink.close(signal);
    await compacted(root, 's3');
    isBusy = false;
  };
  const places = new Places(null, async () => {
    const inner = await openStore(join(root, 'store'));
    const store: ObjectStore = Object.create(inner, {
      head: {
        value: async (...given: Parameters<ObjectStore['head']>) => (await turn(), inner.head(...given)),
      },
      get: {
        value: async function* (...given: Parameters<ObjectStore['get']>) {
          await turn();
          yield* inner.get(...given);
        },
      },
      list: {
        value: async function* (...given: Parameters<ObjectStore['list']>) {
          await turn();
          yield* inner.list(...given);
        },
      },
      close: { value: () => inner.close() },
    }) as ObjectStore;
    return store;
  });
  onTestFinished(() => places.close());
  return { places, more: () => rounds - left };
}

type Read = (path: string, places: Places) => Promise<string[]>;

const READERS: Readonly<Record<string, Read>> = {
  read: async (path, places) => {
    const ids: string[] = [];
    for await (const item of readArchive(path, { places, parts: true }))
      ids.push(item.kind === 'record' ? item.record.id : `${item.file}: ${item.reason}`);
    return ids;
  },
  replay: async (path, places) => {
    const ids: string[] = [];
    const units = await Array.fromAsync(
      listPath(path, { places, selection: ALL, onPassedOver: () => undefined }),
    );
    const reader = new FileReader({ places, selection: ALL, validate });
    for (const unit of units) {
      if (unit.kind !== 'file') {
        ids.push(JSON.stringify(unit));
        continue;
      }
      for await (const { found, problems } of reader.read(unit, 0)) {
        ids.push(...problems.map(({ where, reason }) => `${where}: ${reason}`));
        ids.push(...found.map(({ event }) => event.id));
      }
    }
    return ids;
  },
  reconcile: async (path, places) => {
    const ids: string[] = [];
    const window = { since: 0, until: Number.POSITIVE_INFINITY };
    const onRecord = ({ record }: { record: { id: string } }): void => void ids.push(record.id);
    const { problems } = await countFiles(path, window, { places, signal, onRecord });
    return [...ids, ...problems.map(({ file, reason }) => `${file}: ${reason}`)];
  },
  export: async (path, places) => {
    const { sources, problems } = await listSources([path], places, ALL, takesAll);
    return [...(await idsOf(places, sources)), ...problems.map(({ file, reason }) => `${file}: ${reason}`)];
  },
  load: async (path, places) => {
    const { files, problems } = await readArchiveFolder(path, places);
    const ids = await idsOf(places, files);
    return [...ids, ...problems.map(({ file, reason }) => `${file}: ${reason}`)];
  },
};

async function idsOf(places: Places, files: readonly { root: string; file: string }[]): Promise<string[]> {
  const ids: string[] = [];
  for (const { root, file } of files)
    for await (const line of linesOf(places, root, file)) ids.push((JSON.parse(line) as { id: string }).id);
  return ids;
}

async function* linesOf(places: Places, root: string, file: string): AsyncGenerator<string> {
  for await (const lines of fileLines(places.at(root), file))
    for (const { bytes } of lines) yield String(bytes);
}

/** What a reader has of the events that were there when it began: each once, and nothing else but those that came later. */
function ofOld(ids: readonly string[]): string[] {
  return ids.filter((id) => !id.startsWith('msg_9_')).toSorted();
}

test.each(Object.keys(READERS).flatMap((name) => [4].map((rounds) => [name, rounds] as const)))(
  '%s while %i compactions follow each other: no event is lost or read twice',
  async (name, rounds) => {
    const root = await archive();
    const { places, more } = restless(root, rounds);
    const ids = await READERS[name]!(URL, places);
    expect(more()).toBeGreaterThan(0);
    expect(ofOld(ids)).toEqual(ALL_IDS.toSorted());
    expect(new Set(ids).size).toBe(ids.length);
  },
);

test.each(KINDS)(
  '%s: a replay whose list is being made goes on with what a compaction has joined',
  async (kind: Kind) => {
    const root = await archive();
    const places = placesOf(root);
    onTestFinished(() => places.close());
    const listing = listPath(nameOf(root, kind), { places, selection: ALL, onPassedOver: () => undefined });
    const units = [(await listing.next()).value as object];
    expect((await compacted(root, kind)).made).toBe(1);
    units.push(...(await Array.fromAsync(listing)));
    expect(units.filter((unit) => !('file' in unit))).toEqual([]);
  },
);

test.each([4])('verify while %i compactions follow each other: all is as it should be', async (rounds) => {
  const root = await archive();
  const { places, more } = restless(root, rounds);
  const { differences } = await verifyArchive(URL, { places });
  expect(more()).toBeGreaterThan(0);
  expect(differences).toEqual([]);
});

/** Places whose reader finds something done when it reads the first file of records. */
function interrupted(root: string, done: () => Promise<void>): Places {
  let isDone = false;
  const places = new Places(null, async () => {
    const inner = await openStore(join(root, 'store'));
    return Object.create(inner, {
      list: { value: (...given: Parameters<ObjectStore['list']>) => inner.list(...given) },
      head: { value: (...given: Parameters<ObjectStore['head']>) => inner.head(...given) },
      close: { value: () => inner.close() },
      get: {
        value: async function* (...[key, options]: Parameters<ObjectStore['get']>) {
          if (key.startsWith('dt=') && !isDone) {
            isDone = true;
            await done();
          }
          yield* inner.get(key, options);
        },
      },
    }) as ObjectStore;
  });
  onTestFinished(() => places.close());
  return places;
}

test('verify names no file as extra whose line comes while it reads, and no user’s who is erased meanwhile', async () => {
  const root = await archive();
  const segments = join(root, 'store', '_manifest', WRITERS[0]);
  const last = readdirSync(segments).toSorted().at(-1) ?? '';
  renameSync(join(segments, last), join(root, last));
  const codes = async (done: () => Promise<void>): Promise<string[]> => {
    const { differences } = await verifyArchive(URL, { places: interrupted(root, done) });
    return differences.map(({ code }) => code);
  };
  expect(await codes(() => Promise.resolve())).toEqual(['file_extra']);
  expect(await codes(async () => renameSync(join(root, last), join(segments, last)))).toEqual([]);
  const erasures = erasing(join(root, 'erasure'), join(root, 'store'));
  await erasures.request({ by: 'user', id: userId(1), team: null }, true);
  expect(await codes(async () => void (await erasures.run()))).toEqual([]);
});
