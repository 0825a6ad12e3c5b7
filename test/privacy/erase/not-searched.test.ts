import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { eraseCommand } from '../../../src/cli/erase/command.ts';
import type { ErasureReceipt } from '../../../src/core/erasure.ts';
import { run } from '../../cli/run.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { writeConfig } from '../../support/millrace.ts';
import { secretOf, userId } from './support.ts';

const ROW = `${JSON.stringify({ user_id: userId(1), note: secretOf(1) })}\n`;

/** Runs the erasure of user 1 over a folder `tables` with these files. */
async function erase(
  files: Readonly<Record<string, string | Buffer>>,
  link: (root: string) => void = () => undefined,
) {
  const root = await temporaryFolder();
  for (const [name, content] of Object.entries({ 'tables/made_up.ndjson': ROW, ...files })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  link(root);
  const folders = [join(root, 'tables')];
  const config = writeConfig(root, { erasure: { path: join(root, 'erasure'), folders } });
  const done = await run(eraseCommand, [userId(1), '--now', '--json', '--config', config]);
  const { receipts } = JSON.parse(done.stdout) as { receipts: [ErasureReceipt] };
  const stored = readFileSync(join(root, 'erasure', 'receipts', `${receipts[0].receipt}.json`), 'utf8');
  expect(stored).not.toContain(userId(1));
  return { ...done, receipt: JSON.parse(stored) as ErasureReceipt };
}

test.each([
  ['a tar archive by its short name', 'x.tgz', gzipSync(ROW)],
  ['gzip by a name in capitals', 'meals.ndjson.GZ', gzipSync(ROW)],
  ['gzip by no name', 'meals', gzipSync(ROW)],
  ['gzip in gzip', 'meals.ndjson.gz', gzipSync(gzipSync(ROW))],
  ['zstd by another name', 'meals.ndjson', zstdCompressSync(ROW)],
  ['a tar archive, gzip', 'x.tar.gz', gzipSync(Buffer.concat([Buffer.alloc(257), Buffer.from('ustar')]))],
  ['a zip archive by another name', 'x.docx', Buffer.from('PK\u0003\u0004made up')],
  ['a database by a name in capitals', 'X.DB', Buffer.from('made up')],
])('%s is not searched: named on the receipt, exit 3', async (_, name, content) => {
  const { exit, receipt, stderr } = await erase({ [`tables/${name}`]: content });
  expect([exit, receipt.not_searched, receipt.records_removed]).toEqual([3, [name], 1]);
  expect(stderr).toContain(`not searched: `);
});

test('a linked folder and a linked file are not searched: named on the receipt, exit 3', async () => {
  const { exit, receipt } = await erase({ 'elsewhere/x.ndjson': ROW }, (root) => {
    symlinkSync(join(root, 'elsewhere'), join(root, 'tables', 'folder'));
    symlinkSync(join(root, 'elsewhere', 'x.ndjson'), join(root, 'tables', 'x.ndjson'));
  });
  expect([exit, receipt.not_searched]).toEqual([3, ['folder', 'x.ndjson']]);
});

test('a link whose target cannot be found out is named on the receipt, exit 3', async () => {
  const { exit, receipt } = await erase({}, (root) =>
    symlinkSync(join(root, 'tables', 'loop'), join(root, 'tables', 'loop')),
  );
  expect([exit, receipt.not_searched]).toEqual([3, ['loop']]);
});

test('a link to what is searched at its own place is nothing to name, and neither is one that leads nowhere', async () => {
  const { exit, receipt } = await erase({ 'tables/2026/x.ndjson': ROW }, (root) => {
    symlinkSync(join(root, 'tables', '2026'), join(root, 'tables', 'latest'));
    symlinkSync(join(root, 'nowhere'), join(root, 'tables', 'broken'));
  });
  expect([exit, receipt.not_searched, receipt.records_removed]).toEqual([0, [], 2]);
});

test('a file whose name alone holds the id is on the receipt, and the id is not put on record', async () => {
  const { exit, receipt, stdout, stderr } = await erase({
    [`tables/of-${userId(1).toUpperCase()}.txt`]: 'made up',
  });
  expect([exit, receipt.not_searched]).toEqual([3, ['of-*.txt']]);
  expect(JSON.parse(stdout)).toMatchObject({ left: [{ item: 'of-*.txt', requests: [] }] });
  expect(stdout + stderr).not.toContain(userId(1).toUpperCase());
});
