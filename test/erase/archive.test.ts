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
import { describe, expect, test, vi } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import type { ErasureProgress, ErasureReceipt } from '../../src/core/erasure.ts';
import { filesSink, ids, records, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { skipped } from '../support/requirements.ts';
import { lacksSyncs, watchSyncs } from '../support/synced.ts';
import { erasuresOver, eventOf, find, folderStore, secretOf, userId } from './support.ts';

/** `MILLRACE_TEST_ERASE_EVENTS=900000` makes an archive of about 1 GB; then only the speed is printed. */
const EVENTS = Number(process.env['MILLRACE_TEST_ERASE_EVENTS'] ?? 2500);
vi.setConfig({ testTimeout: 600_000 + EVENTS / 2 });
const USERS = 500;
const GONE = [17, 211, 498];

/** An archive of 500 users, each with as many events, one user after the other. */
async function makeArchive(path: string, compress: string, finish = true): Promise<number> {
  const { sink } = filesSink(path, {
    compress,
    rotate: { bytes: EVENTS > 10_000 ? '16MiB' : 40_000 },
    partitionBy: ['date', 'type'],
  });
  await sink.open();
  const each = EVENTS / USERS;
  for (let user = 0; user < USERS; user += 1) {
    for (let n = 0; n < each; n += 1000) {
      const batch = Array.from({ length: Math.min(1000, each - n) }, (_, i) => eventOf(user, n + i));
      await sink.send(
        batch.map((event) => ({ event, destination: null })),
        signal,
      );
    }
  }
  await sink.close(finish ? signal : AbortSignal.abort());
  return each;
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

async function eraseAll(
  folder: string,
  archive: string,
  users: readonly number[],
): Promise<{ receipts: readonly ErasureReceipt[]; bytes: number }> {
  const { erasures } = erasuresOver(folder, [folderStore(archive)]);
  for (const user of users) await erasures.request({ by: 'user', id: userId(user), team: null }, true);
  const { receipts, left, bytes_searched: bytes } = await erasures.run();
  expect(left).toEqual([]);
  return { receipts, bytes };
}

test('a part of a spool that is sent on loses the lines of the user, and keeps those by which others are known', async () => {
  const root = await temporaryFolder();
  const spool = join(root, 'spool');
  await makeArchive(spool, 'none', false);
  const part = readdirSync(spool, { recursive: true, encoding: 'utf8' }).find((file) =>
    file.endsWith('.part'),
  );
  const sent = join(spool, part?.replace(/part$/, 'sent') ?? '');
  renameSync(join(spool, part ?? ''), sent);
  const lines = readFileSync(sent, 'utf8').trimEnd().split('\n');
  const gone = USERS - 1;
  const kept = lines.filter((line) => !line.includes(userId(gone)));
  expect([lines.length > kept.length, kept.length > 0]).toEqual([true, true]);
  await eraseAll(join(root, 'erasure'), spool, [gone]);
  expect(readFileSync(sent, 'utf8').trimEnd().split('\n')).toEqual(kept);
});

test('a record goes with the user whom its body names, also where its envelope names another', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  const { sink } = filesSink(archive, { compress: 'none' });
  await sink.open();
  const pretty = Buffer.from(`${eventOf(2, 1).body.toString().slice(0, -1)}\n}`);
  const events = [
    { ...eventOf(1, 0), body: eventOf(2, 0).body },
    { ...eventOf(1, 1), body: pretty },
    eventOf(1, 2),
  ];
  await sink.send(
    events.map((event) => ({ event, destination: null })),
    signal,
  );
  await sink.close(signal);
  await eraseAll(join(root, 'erasure'), archive, [2]);
  expect(await ids(archive)).toEqual([eventOf(1, 2).id]);
  expect(find([archive], [secretOf(2)])).toEqual([]);
});

describe.each(['gzip', 'zstd', 'none'])('an archive, %s', (compress) => {
  test('only files that hold the users are rewritten, and nothing of them is left in any byte', async () => {
    const root = await temporaryFolder();
    const archive = join(root, 'archive');
    const each = await makeArchive(archive, compress);
    const hold = find([archive], GONE.map(secretOf)).map((path) => path.slice(archive.length + 1));
    expect(hold.length).toBeGreaterThanOrEqual(3);
    const before = snapshot(archive);
    const verified = await verifyArchive(archive);

    const started = performance.now();
    const { receipts, bytes } = await eraseAll(join(root, 'erasure'), archive, GONE);
    const seconds = (performance.now() - started) / 1000;
    if (EVENTS > 10_000)
      process.stdout.write(
        `${compress}: searched ${bytes} bytes, erased from ${hold.length} files, ${seconds} s\n`,
      );

    expect(
      find(
        [root],
        [...GONE.map(userId), ...GONE.map(secretOf), ...GONE.map((user) => `made-up-client-${user}"`)],
      ),
    ).toEqual([]);
    const after = snapshot(archive);
    const touched = [...before].filter(([file, stamp]) => after.get(file) !== stamp).map(([file]) => file);
    expect(touched.sort()).toEqual([...hold, '_manifest.jsonl'].sort());
    const report = await verifyArchive(archive);
    expect(report.differences).toEqual([]);
    expect(report.records).toBe(verified.records - GONE.length * each);
    expect(receipts.map(({ records_removed: count }) => count)).toEqual(GONE.map(() => each));
    const items = receipts.flatMap((receipt) => receipt.items);
    expect([...new Set(items.map(({ item }) => item))].sort()).toEqual(hold.sort());
    for (const { sha256_before: one, sha256_after: other } of items) {
      expect(one).toMatch(/^[0-9a-f]{64}$/);
      expect(other).not.toBe(one);
    }
  });
});

test('how far it is goes from 0 to all the files of all stores, and no further', async () => {
  const folder = await temporaryFolder();
  const stores = ['one', 'two'].map((name) => join(folder, name));
  for (const store of stores) {
    mkdirSync(store);
    for (const n of [1, 2, 3]) writeFileSync(join(store, `${n}.ndjson`), `{"user_id":"${userId(n)}"}\n`);
  }
  const seen: ErasureProgress[] = [];
  const { erasures } = erasuresOver(
    folder,
    stores.map((store) => folderStore(store)),
    {
      onProgress: (progress) => void seen.push(progress),
    },
  );
  await erasures.request({ by: 'user', id: userId(1), team: null }, true);
  const { files_searched: files } = await erasures.run();
  expect(files).toBeGreaterThan(2);
  expect(seen[0]).toMatchObject({ store: 1, stores: 2, files: 0, total: files / 2 });
  expect(seen.at(-1)).toMatchObject({ store: 2, files, total: files });
  expect(seen.filter((one) => one.files > one.total)).toEqual([]);
});

test('other records keep their bytes, line for line', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  await makeArchive(archive, 'none');
  const linesOf = (): string[] =>
    readdirSync(archive, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ndjson'))
      .sort()
      .flatMap((file) => readFileSync(join(archive, file), 'utf8').split('\n').filter(Boolean));
  const before = linesOf();
  await eraseAll(join(root, 'erasure'), archive, [3]);
  expect(linesOf()).toEqual(before.filter((line) => !line.includes(userId(3))));
});

test('a file of which nothing is left is removed, and the manifest says by which erasure', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  const { sink } = filesSink(archive);
  await sink.open();
  await sink.send([{ event: eventOf(1, 1), destination: null }], signal);
  await sink.close(signal);
  const { receipts } = await eraseAll(join(root, 'erasure'), archive, [1]);
  const [receipt] = receipts;
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
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  const { sink } = filesSink(archive);
  await sink.open();
  await sink.send(
    [1, 2, 1, 3].map((user, n) => ({ event: eventOf(user, n), destination: null })),
    signal,
  );
  await sink.close(AbortSignal.abort());
  await eraseAll(join(root, 'erasure'), archive, [1]);
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
  const again = filesSink(archive);
  await again.sink.open();
  await again.sink.close(signal);
  expect((await records(archive)).map(({ record }) => record.id)).toEqual(['msg_2_1', 'msg_3_3']);
  expect((await verifyArchive(archive)).differences).toEqual([]);
});

test('unfinished files of a writer that lives are left, named, and the request waits', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  const { sink } = filesSink(archive);
  await sink.open();
  await sink.send([{ event: eventOf(1, 1), destination: null }], signal);
  const { erasures } = erasuresOver(join(root, 'erasure'), [folderStore(archive)]);
  await erasures.request({ by: 'user', id: userId(1), team: null }, true);
  const first = await erasures.run();
  expect(first.receipts).toEqual([]);
  expect(first.left).toMatchObject([{ item: expect.stringMatching(/\.part$/) as string }]);
  expect((await erasures.list()).waiting).toHaveLength(1);
  await sink.close(signal);
  const second = await erasures.run();
  expect(second).toMatchObject({ left: [], receipts: [{ records_removed: 1 }] });
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
});

test('a writer in this process finishes the open files that hold a user, and only those', async () => {
  const root = await temporaryFolder();
  const { sink } = filesSink(join(root, 'archive'), { partitionBy: ['hour'] });
  await sink.open();
  const late = { receivedAt: Date.UTC(2026, 10, 21, 23) };
  await sink.send(
    [eventOf(1, 1), eventOf(2, 1, late)].map((event) => ({ event, destination: null })),
    signal,
  );
  await sink.settle((path) => Promise.resolve(readFileSync(path).includes(userId(1))));
  expect((await records(join(root, 'archive'))).map(({ record }) => record.id)).toEqual(['msg_1_1']);
  await sink.close(signal);
});

test('what a killed writer had half written goes, wherever it lies', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  const { sink } = filesSink(archive);
  await sink.open();
  await sink.keep(eventOf(2, 1));
  await sink.send([{ event: eventOf(1, 1), destination: null }], signal);
  await sink.close(AbortSignal.abort());
  const folders = readdirSync(archive, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  for (const { parentPath, name } of folders) {
    for (const file of ['.0123456789ab.tmp', '.erase-0123456789abcdef.tmp', 'x.tmp'])
      if (file !== 'x.tmp' || parentPath.includes('_open'))
        writeFileSync(join(parentPath, name, file), secretOf(1));
  }
  await eraseAll(join(root, 'erasure'), archive, [1]);
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
});

test('kept events are removed whole, in an archive further down too', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'data', 'archive');
  mkdirSync(join(root, 'data'), { recursive: true });
  const { sink } = filesSink(archive);
  await sink.open();
  for (const user of [1, 2]) await sink.keep(eventOf(user, 1));
  await sink.close(signal);
  const { erasures } = erasuresOver(join(root, 'erasure'), [folderStore(join(root, 'data'))]);
  await erasures.request({ by: 'user', id: userId(1), team: null }, true);
  const { receipts, left } = await erasures.run();
  expect(left).toEqual([]);
  expect(receipts).toMatchObject([{ records_removed: 1, items: [{ sha256_after: null }] }]);
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
  expect(find([root], [secretOf(2)])).toHaveLength(1);
  expect((await verifyArchive(archive)).differences).toEqual([]);
});

test('a symbolic link in the place of the writers leads nowhere', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  const elsewhere = join(root, 'elsewhere', '0123456789ab');
  for (const folder of [archive, elsewhere]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(elsewhere, 'made-up.tmp'), 'of somebody else');
  symlinkSync(join(root, 'elsewhere'), join(archive, '_open'));
  const { erasures } = erasuresOver(join(root, 'erasure'), [folderStore(archive)]);
  await erasures.request({ by: 'user', id: userId(1), team: null }, true);
  expect(await erasures.run()).toMatchObject({ left: [{ item: '_open', requests: [] }] });
  expect(readdirSync(elsewhere)).toEqual(['made-up.tmp']);
});

test('a kept event that unpacks to more than any event has is named, and not held in memory', async () => {
  const root = await temporaryFolder();
  const folder = join(root, 'archive', 'claim-checks');
  mkdirSync(folder, { recursive: true });
  const blanks = Buffer.alloc(257 * 2 ** 20, ' ');
  blanks.write(`{"user_id":"${userId(1)}"`);
  writeFileSync(join(folder, 'made-up.json.gz'), gzipSync(blanks, { level: 1 }));
  const { erasures } = erasuresOver(join(root, 'erasure'), [folderStore(join(root, 'archive'))]);
  await erasures.request({ by: 'user', id: userId(1), team: null }, true);
  const { receipts, left } = await erasures.run();
  expect(receipts).toEqual([]);
  expect(left).toMatchObject([{ reason: expect.stringContaining('cannot be one event') as string }]);
});

test.skipIf(lacksSyncs !== null)(
  `a file that goes as a whole goes when the removal of what was written for it is durable${skipped(lacksSyncs)}`,
  async () => {
    const folder = realpathSync(await temporaryFolder());
    const archive = join(folder, 'archive');
    const { sink } = filesSink(archive, { compress: 'none', partitionBy: [] });
    await sink.open();
    await sink.send([{ event: eventOf(1, 0), destination: null }], signal);
    await sink.close(signal);
    const names = (): string[] => readdirSync(archive).filter((name) => /\.ndjson$|\.tmp$/.test(name));
    const before = names();
    const seen: string[][] = [];
    await watchSyncs((path) => path === archive && seen.push(names()));
    await eraseAll(folder, archive, [1]);
    expect(before).toHaveLength(1);
    expect(names()).toEqual([]);
    // A crash from here on finds the file, or nothing.
    expect(seen).toContainEqual(before);
  },
);
