import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { verifyArchive } from '../../../src/archive/verify.ts';
import type { ErasureProgress } from '../../../src/core/erasure.ts';
import { filesSink, ids, records, signal } from '../../sinks/support.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { skipped } from '../../support/requirements.ts';
import { lacksSyncs, watchSyncs } from '../../support/synced.ts';
import {
  eraseFrom,
  eraseNow,
  erasuresOver,
  eventOf,
  find,
  folderStore,
  secretOf,
  userId,
} from './support.ts';

const USERS = 500;
const EACH = 5;
const GONE = [17, 211, 498];

async function place(): Promise<{ root: string; archive: string }> {
  const root = await temporaryFolder();
  return { root, archive: join(root, 'archive') };
}

/** An archive of 500 users, each with as many events, one user after the other. */
function makeArchive(path: string, compress: string, killed = false) {
  const batches = Array.from({ length: USERS }, (_, user) =>
    batchOf(...Array.from({ length: EACH }, (__, n) => eventOf(user, n))),
  );
  const options = { compress, rotate: { bytes: 40_000 }, partitionBy: ['date', 'type'] };
  return writeFiles(path, batches, { options, killed });
}

function snapshot(path: string): Map<string, string> {
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return new Map(
    files
      .filter((file) => statSync(join(path, file)).isFile() && !file.endsWith('lock'))
      .map((file) => {
        const { ino, mtimeNs } = statSync(join(path, file), { bigint: true });
        return [file, `${ino} ${mtimeNs}`];
      }),
  );
}

/** Of an archive alone, from which nothing must be left. @returns the receipts */
async function eraseAll(root: string, archive: string, ...users: number[]) {
  const { receipts, left } = await eraseFrom(root, [folderStore(archive)], ...users);
  expect(left).toEqual([]);
  return receipts;
}

/** Where something of user 1 stands. */
const traces = (root: string): string[] => find([root], [userId(1), secretOf(1)]);

test('a part of a spool that is sent on loses the lines of the user, and keeps those by which others are known', async () => {
  const { root, archive: spool } = await place();
  await makeArchive(spool, 'none', true);
  const files = readdirSync(spool, { recursive: true, encoding: 'utf8' });
  const part = files.find((file) => file.endsWith('.part')) ?? '';
  const sent = join(spool, part.replace(/part$/, 'sent'));
  renameSync(join(spool, part), sent);
  const lines = readFileSync(sent, 'utf8').trimEnd().split('\n');
  const kept = lines.filter((line) => !line.includes(userId(USERS - 1)));
  expect([lines.length > kept.length, kept.length > 0]).toEqual([true, true]);
  await eraseAll(root, spool, USERS - 1);
  expect(readFileSync(sent, 'utf8').trimEnd().split('\n')).toEqual(kept);
});

test('a record goes with the user whom its body names, also where its envelope names another', async () => {
  const { root, archive } = await place();
  const pretty = Buffer.from(`${eventOf(2, 1).body.toString().slice(0, -1)}\n}`);
  const events = [
    { ...eventOf(1, 0), body: eventOf(2, 0).body },
    { ...eventOf(1, 1), body: pretty },
    eventOf(1, 2),
  ];
  await writeFiles(archive, [batchOf(...events)]);
  await eraseAll(root, archive, 2);
  expect(await ids(archive)).toEqual([eventOf(1, 2).id]);
  expect(find([archive], [secretOf(2)])).toEqual([]);
});

/** Lines of the files of records, in the order of the files. */
const linesOf = async (archive: string): Promise<string[]> =>
  (await records(archive)).map(({ record, body }) => JSON.stringify([record, body.toString()]));

test.each(['gzip', 'zstd', 'none'])(
  'an archive, %s: only files that hold the users are rewritten, nothing of them is left in any byte, and others’ records stay',
  async (compress) => {
    const { root, archive } = await place();
    await makeArchive(archive, compress);
    const hold = find([archive], GONE.map(secretOf)).map((path) => path.slice(archive.length + 1));
    expect(hold.length).toBeGreaterThanOrEqual(3);
    const before = snapshot(archive);
    const lines = await linesOf(archive);
    const receipts = await eraseAll(root, archive, ...GONE);
    expect(
      find(
        [root],
        GONE.flatMap((user) => [userId(user), secretOf(user), `made-up-client-${user}"`]),
      ),
    ).toEqual([]);
    const after = snapshot(archive);
    const touched = [...before].filter(([file, stamp]) => after.get(file) !== stamp).map(([file]) => file);
    expect(touched.toSorted()).toEqual([...hold, '_manifest.jsonl'].toSorted());
    expect((await verifyArchive(archive)).differences).toEqual([]);
    const others = lines.filter((line) => !GONE.some((user) => line.includes(userId(user))));
    expect(others).toHaveLength((USERS - GONE.length) * EACH);
    expect(await linesOf(archive)).toEqual(others);
    expect(receipts.map(({ records_removed: count }) => count)).toEqual(GONE.map(() => EACH));
    const items = receipts.flatMap((receipt) => receipt.items);
    expect([...new Set(items.map(({ item }) => item))].toSorted()).toEqual(hold.toSorted());
    for (const { sha256_before: one, sha256_after: other } of items) {
      expect(one).toMatch(/^[0-9a-f]{64}$/);
      expect(other).not.toBe(one);
    }
  },
);

test('how far it is goes from 0 to all the files of all stores, and no further', async () => {
  const { root } = await place();
  const stores = ['one', 'two'].map((name) => join(root, name));
  for (const store of stores) {
    mkdirSync(store);
    for (const n of [1, 2, 3]) writeFileSync(join(store, `${n}.ndjson`), `{"user_id":"${userId(n)}"}\n`);
  }
  const seen: ErasureProgress[] = [];
  const folders = stores.map((store) => folderStore(store));
  const { erasures } = erasuresOver(root, folders, { onProgress: (progress) => void seen.push(progress) });
  const { files_searched: files } = await eraseNow(erasures, 1);
  expect(files).toBeGreaterThan(2);
  expect(seen[0]).toMatchObject({ store: 1, stores: 2, files: 0, total: files / 2 });
  expect(seen.at(-1)).toMatchObject({ store: 2, files, total: files });
  expect(seen.filter((one) => one.files > one.total)).toEqual([]);
});

test('a file of which nothing is left is removed, and the manifest says by which erasure', async () => {
  const { root, archive } = await place();
  await writeFiles(archive, [batchOf(eventOf(1, 1))]);
  const [receipt] = await eraseAll(root, archive, 1);
  expect(await records(archive)).toEqual([]);
  expect(receipt?.items).toMatchObject([{ removed: 1, sha256_after: null }]);
  const lines = readFileSync(join(archive, '_manifest.jsonl'), 'utf8').trim().split('\n');
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
    erasure: receipt?.receipt,
    removed: 1,
    records: 0,
    sha256: null,
  });
  expect((await verifyArchive(archive)).differences).toEqual([]);
});

test('unfinished files of a writer that is gone are cleared, and taken up by the next', async () => {
  const { root, archive } = await place();
  await writeFiles(archive, [batchOf(...[1, 2, 1, 3].map((user, n) => eventOf(user, n)))], { killed: true });
  await eraseAll(root, archive, 1);
  expect(traces(root)).toEqual([]);
  await writeFiles(archive, []);
  expect(await ids(archive)).toEqual(['msg_2_1', 'msg_3_3']);
  expect((await verifyArchive(archive)).differences).toEqual([]);
});

test('unfinished files of a writer that lives are left, named, and the request waits', async () => {
  const { root, archive } = await place();
  const { sink } = filesSink(archive);
  await sink.open();
  await sink.send(batchOf(eventOf(1, 1)), signal);
  const { erasures } = erasuresOver(join(root, 'erasure'), [folderStore(archive)]);
  expect(await eraseNow(erasures, 1)).toMatchObject({
    receipts: [],
    left: [{ item: expect.stringMatching(/\.part$/) as string }],
  });
  expect((await erasures.list()).waiting).toHaveLength(1);
  await sink.close(signal);
  expect(await erasures.run()).toMatchObject({ left: [], receipts: [{ records_removed: 1 }] });
  expect(traces(root)).toEqual([]);
});

test('a writer in this process finishes the open files that hold a user, and only those', async () => {
  const { archive } = await place();
  const { sink } = filesSink(archive, { partitionBy: ['hour'] });
  await sink.open();
  const late = { receivedAt: Date.UTC(2026, 10, 21, 23) };
  await sink.send(batchOf(eventOf(1, 1), eventOf(2, 1, late)), signal);
  await sink.settle((path) => Promise.resolve(readFileSync(path).includes(userId(1))));
  expect(await ids(archive)).toEqual(['msg_1_1']);
  await sink.close(signal);
});

test('what a killed writer had half written goes, wherever it lies', async () => {
  const { root, archive } = await place();
  await writeFiles(archive, [batchOf(eventOf(1, 1))], { kept: [eventOf(2, 1)], killed: true });
  const entries = readdirSync(archive, { recursive: true, withFileTypes: true });
  for (const { parentPath, name } of entries.filter((entry) => entry.isDirectory())) {
    const temporary = ['.0123456789ab.tmp', '.erase-0123456789abcdef.tmp'];
    if (parentPath.includes('_open')) temporary.push('x.tmp');
    for (const file of temporary) writeFileSync(join(parentPath, name, file), secretOf(1));
  }
  await eraseAll(root, archive, 1);
  expect(traces(root)).toEqual([]);
});

test('kept events are removed whole, in an archive further down too', async () => {
  const { root } = await place();
  const archive = join(root, 'data', 'archive');
  mkdirSync(join(root, 'data'));
  await writeFiles(archive, [], { kept: [1, 2].map((user) => eventOf(user, 1)) });
  const receipts = await eraseAll(root, join(root, 'data'), 1);
  expect(receipts).toMatchObject([{ records_removed: 1, items: [{ sha256_after: null }] }]);
  expect(traces(root)).toEqual([]);
  expect(find([root], [secretOf(2)])).toHaveLength(1);
  expect((await verifyArchive(archive)).differences).toEqual([]);
});

test('a symbolic link in the place of the writers leads nowhere', async () => {
  const { root, archive } = await place();
  const elsewhere = join(root, 'elsewhere', '0123456789ab');
  for (const folder of [archive, elsewhere]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(elsewhere, 'made-up.tmp'), 'of somebody else');
  symlinkSync(join(root, 'elsewhere'), join(archive, '_open'));
  const left = [{ item: '_open', requests: [] }];
  expect(await eraseFrom(root, [folderStore(archive)], 1)).toMatchObject({ left });
  expect(readdirSync(elsewhere)).toEqual(['made-up.tmp']);
});

test('a kept event that unpacks to more than any event has is named, and not held in memory', async () => {
  const { root, archive } = await place();
  mkdirSync(join(archive, 'claim-checks'), { recursive: true });
  const blanks = Buffer.alloc(257 * 2 ** 20, ' ');
  blanks.write(`{"user_id":"${userId(1)}"`);
  writeFileSync(join(archive, 'claim-checks', 'made-up.json.gz'), gzipSync(blanks, { level: 1 }));
  expect(await eraseFrom(root, [folderStore(archive)], 1)).toMatchObject({
    receipts: [],
    left: [{ reason: expect.stringContaining('cannot be one event') as string }],
  });
});

test.skipIf(lacksSyncs !== null)(
  `a file that goes as a whole goes when the removal of what was written for it is durable${skipped(lacksSyncs)}`,
  async () => {
    const root = realpathSync((await place()).root);
    const archive = join(root, 'archive');
    const options = { compress: 'none', partitionBy: [] };
    await writeFiles(archive, [batchOf(eventOf(1, 0))], { options });
    const names = (): string[] => readdirSync(archive).filter((name) => /\.ndjson$|\.tmp$/.test(name));
    const before = names();
    const seen: string[][] = [];
    await watchSyncs((path) => path === archive && seen.push(names()));
    await eraseAll(root, archive, 1);
    expect(before).toHaveLength(1);
    expect(names()).toEqual([]);
    // A crash from here on finds the file, or nothing.
    expect(seen).toContainEqual(before);
  },
);
