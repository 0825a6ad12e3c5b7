import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { FilesSink } from '../../../src/sinks/files/sink.ts';
import { FaultyStore, recordsIn, storeSink } from '../../sinks/store-support.ts';
import { signal } from '../../sinks/support.ts';
import { batchOf } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { replaceFiles } from '../../support/replaced-files.ts';
import { spoolErasures } from './objects-support.ts';
import { eraseNow, eventOf, find, secretOf, userId } from './support.ts';

/** Called before each step that makes, renames or removes a file. */
const disk = { before: (): void => undefined, removes: true };
function watched<Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) {
  return (...given: Given): Promise<Result> => {
    disk.before();
    return call(...given);
  };
}
beforeEach(() =>
  replaceFiles(({ link, open, rename, rm, rmdir, unlink, writeFile }) => ({
    link: watched(link),
    open: watched(open),
    writeFile: watched(writeFile),
    rename: watched(rename),
    rm: watched((...given: Parameters<typeof rm>) =>
      !disk.removes && /\/spool\/.*\.gz$/.test(String(given[0]))
        ? Promise.reject(new Error('EIO: made up'))
        : rm(...given),
    ),
    rmdir: watched(rmdir),
    unlink: watched(unlink),
  })),
);
afterEach(() => void Object.assign(disk, { before: () => undefined, removes: true }));

const GONE = 1;
const USERS = [GONE, 2];
const EVENTS = 3;
const batch = (users: readonly number[]) =>
  batchOf(...users.flatMap((user) => Array.from({ length: EVENTS }, (_, n) => eventOf(user, n))));

/** Every file below a folder with its bytes: two kills that leave the same are one. */
function contentOf(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return names
    .filter((name) => statSync(join(folder, name)).isFile() && !/(^|\/)lock/.test(name))
    .map((name) => `${name} ${readFileSync(join(folder, name), 'base64')}`)
    .join('\n');
}

/** What kill -9 leaves at any step of closing a file, putting it and letting its part go: a folder each. */
async function killedEverywhere(options: object): Promise<string[]> {
  const [root, left] = [await temporaryFolder(), await temporaryFolder()];
  const store = await FaultyStore.in(join(root, 'store'));
  const { sink, context } = storeSink(store, join(root, 'spool'), options);
  const found = new Map<string, string>();
  const look = (): void => {
    const to = join(left, String(found.size));
    const content = contentOf(root);
    if (found.has(content)) return;
    // An object is in a store whole, or not at all.
    cpSync(root, to, { recursive: true, filter: (path) => !/store\/.*\.tmp$/.test(path) });
    found.set(content, to);
  };
  await sink.open();
  disk.before = look;
  await sink.send(batch(USERS), signal);
  await sink.flush();
  context.clock.advance(40_000);
  await expect
    .poll(() => readdirSync(join(root, 'spool'), { recursive: true }).join())
    .not.toContain('.sent');
  disk.before = () => undefined;
  look();
  await sink.close(signal);
  return [...found.values()];
}

/** Nothing of it is sent again: the part is gone, and the object is there. */
function wasConfirmed(root: string): boolean {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' });
  return (
    names.some((name) => name.startsWith('store/dt=')) && !names.some((name) => /\.(part|sent)$/.test(name))
  );
}

async function erase(root: string, sink: FilesSink | null): Promise<void> {
  const [spool = ''] = readdirSync(join(root, 'spool'));
  const erasures = spoolErasures(root, sink, join(root, 'spool', spool));
  const { receipts, left } = await eraseNow(erasures, GONE);
  expect(left).toEqual([]);
  expect(receipts).toHaveLength(1);
}

const traces = (root: string): string[] => find([root], [userId(GONE), secretOf(GONE)]);

const STARTED = 'the receiver has started again';
const STOPPED = 'it is stopped';

test.each([
  [{ compress: 'gzip' }, STARTED],
  [{ compress: 'gzip' }, STOPPED],
  [{ compress: 'none' }, STARTED],
  [{ compress: 'none' }, STOPPED],
])(
  'kill -9 at any step of a file on its way to a store, %j: an erasure ends when %s, and nothing of the user is left',
  async (options, when) => {
    const kills = await killedEverywhere(options);
    expect(kills.length).toBeGreaterThan(8);
    for (const root of kills) {
      const isRunning = when === STARTED;
      const isOver = wasConfirmed(root);
      const store = await FaultyStore.in(join(root, 'store'));
      const { sink } = storeSink(store, join(root, 'spool'), options);
      if (!isRunning) await erase(root, null);
      await sink.open();
      if (!isOver) await sink.send(batch(isRunning ? USERS : [2]), signal);
      if (isRunning) await erase(root, sink);
      await sink.close(signal);
      expect(traces(root)).toEqual([]);
      const left = (await recordsIn(store)).map(({ id }) => id).toSorted();
      expect(left).toEqual(
        batch([2])
          .map(({ event }) => event.id)
          .toSorted(),
      );
    }
  },
);

/** A running sink with a file that cannot be put yet, and where the file lies that was made for it. */
async function waiting() {
  const root = await temporaryFolder();
  const store = await FaultyStore.in(join(root, 'store'));
  const { sink, context } = storeSink(store, join(root, 'spool'));
  await sink.open();
  onTestFinished(() => sink.close(signal));
  store.fault = (verb) => (verb === 'putIfAbsent' ? 'busy' : null);
  await sink.send(batch(USERS), signal);
  await sink.flush();
  const made = filesIn(root).find((name) => name.startsWith('spool/') && name.endsWith('.gz')) ?? '';
  return { root, store, sink, context, made };
}

const filesIn = (root: string): string[] => readdirSync(root, { recursive: true, encoding: 'utf8' });

test('a power cut that brings back the file of a part which was sent on: the start removes it', async () => {
  const { root, store, sink, made } = await waiting();
  const bytes = readFileSync(join(root, made));
  store.fault = () => null;
  await sink.flush();
  await sink.close(signal);
  writeFileSync(join(root, made), bytes);
  const again = storeSink(store, join(root, 'spool')).sink;
  await again.open();
  await erase(root, again);
  await again.close(signal);
  expect(traces(root)).toEqual([]);
});

test('a file that could not be removed when it was put goes with the next try', async () => {
  const { root, store, sink, context } = await waiting();
  store.fault = () => null;
  disk.removes = false;
  await sink.flush();
  disk.removes = true;
  expect(filesIn(root).filter((name) => name.startsWith('spool/') && name.endsWith('.gz'))).toHaveLength(1);
  context.clock.advance(40_000);
  await expect.poll(() => filesIn(root).filter((name) => /^spool.*(gz|part)$/.test(name))).toEqual([]);
  context.clock.advance(40_000);
  await erase(root, sink);
  expect(traces(root)).toEqual([]);
});

test('a part that somebody removes takes the file with it that was made of it', async () => {
  const { root, store, sink, made } = await waiting();
  rmSync(join(root, made.replace('.ndjson.gz', '.part')));
  await sink.flush();
  expect(filesIn(root)).not.toContain(made);
  store.fault = () => null;
  await erase(root, sink);
  expect(traces(root)).toEqual([]);
});

test('an erasure while an older event waits, then a kill: what is sent again of others is not put twice', async () => {
  const root = await temporaryFolder();
  const store = await FaultyStore.in(join(root, 'store'));
  const start = (): FilesSink => storeSink(store, join(root, 'spool'), { partitionBy: ['type'] }).sink;
  const old = batchOf(eventOf(2, 9, { type: 'old' }));
  const sink = start();
  await sink.open();
  store.fault = (_, key) => (key.includes('type=old') ? 'busy' : null);
  for (const each of [old, batch(USERS)]) await sink.send(each, signal);
  await erase(root, sink);
  await sink.close(AbortSignal.abort());
  store.fault = () => null;
  const again = start();
  await again.open();
  for (const each of [old, batch([2])]) await again.send(each, signal);
  await again.close(signal);
  expect(traces(root)).toEqual([]);
  const sent = [...old, ...batch([2])].map(({ event }) => event.id);
  expect((await recordsIn(store)).map(({ id }) => id).toSorted()).toEqual(sent.toSorted());
});
