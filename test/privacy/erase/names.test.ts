import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyArchive } from '../../../src/archive/verify.ts';
import { IdSearch } from '../../../src/privacy/erase/id-search.ts';
import { signJson } from '../../../src/core/signature.ts';
import { receiptsIn } from '../../../src/privacy/erase/receipt.ts';
import { openSigner } from '../../../src/privacy/proof/open.ts';
import { temporaryFolder } from '../../support/folders.ts';
import type { FilesSink } from '../../../src/sinks/files/sink.ts';
import { filesSink, signal } from '../../sinks/support.ts';
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

const ID = userId(17);

/** What somebody sees who has a folder: every byte below it, and every name. */
function allOf(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return `${path}\n${entry.isFile() ? readFileSync(path, 'latin1') : ''}`;
    })
    .join('\n')
    .toLowerCase();
}

test.each([
  [ID, `${ID}/x-${ID.toUpperCase()}.${ID.replaceAll('-', '')}`, '*/x-*.*'],
  ['kim@made-up.example', 'u/kim%40made-up.example/Kim@made-up.example/kim%2540made-up.example', 'u/*/*/*'],
  ['kim', 'kim/kimono/user=Kim/user%3Dkim/kim-1.ndjson', '*/kimono/user=*/user%3D*/*-1.ndjson'],
  ['11', '11/dt=2026-11-22/user=11/11.ndjson', '*/dt=2026-11-22/user=*/*.ndjson'],
])('a name without %s has it nowhere, however it is written', (id, name, redacted) => {
  const subject = { request: 'a', by: 'user', id, team: null } as const;
  expect(new IdSearch([subject]).redact(name)).toBe(redacted);
});

test('one id that holds another leaves nothing of it', () => {
  const subjects = ['user-17', 'user-171'].map(
    (id) => ({ request: id, by: 'user', id, team: null }) as const,
  );
  expect(new IdSearch(subjects).redact('user-171/user-17')).toBe('*/*');
});

test('no receipt, and nothing else of the erasure, names who was erased after a file was called after them', async () => {
  const folder = await temporaryFolder();
  const store = join(folder, 'store');
  const erasure = join(folder, 'erasure');
  const inner = join(store, 'exports', `${ID}-and-${ID}`);
  mkdirSync(inner, { recursive: true });
  const file = join(inner, `${ID.toUpperCase()}.ndjson`);
  writeFileSync(file, `{"user_id":"${ID}"}\n{"user_id":"${userId(2)}"}\n`);
  // One that waits for its own file, and keeps the plan of the run.
  const odd = join(store, 'odd.txt');
  writeFileSync(odd, userId(3));
  const lines: string[] = [];
  const note = (said: object, text: string) => void lines.push(JSON.stringify([said, text]));
  const log = { info: note, warn: note, error: note };
  const { erasures } = erasuresOver(erasure, [folderStore(store)], { log });
  const first = await eraseNow(erasures, 17, 3);
  expect(first.receipts).toMatchObject([
    {
      records_removed: 1,
      items: [{ item: 'exports/*-and-*/*.ndjson' }],
      not_searched: ['exports/*-and-*/*.ndjson'],
    },
  ]);
  expect(first.left).toHaveLength(2);
  renameSync(inner, join(store, 'exports', 'plain'));
  renameSync(
    join(store, 'exports', 'plain', `${ID.toUpperCase()}.ndjson`),
    join(store, 'exports', 'a.ndjson'),
  );
  const second = await erasures.run();
  expect([second.receipts, second.left.map(({ item }) => item)]).toEqual([[], ['odd.txt']]);
  expect(existsSync(odd)).toBe(true);
  const everything =
    allOf(folder) + lines.join('\n').toLowerCase() + JSON.stringify([first, second]).toLowerCase();
  expect(everything).not.toContain(ID);
});

/** An archive with events of some client users, in two files, and an export of it, as far as they say what they hold. */
async function listed(folder: string, clientUsers: readonly string[]): Promise<FilesSink> {
  const { sink } = filesSink(folder, { partitionBy: ['date', 'hour'], rotate: { bytes: 1024 } });
  await sink.open();
  for (const [n, clientUser] of clientUsers.entries()) {
    const body = Buffer.from(JSON.stringify({ client_user_id: clientUser, note: secretOf(1) }));
    const event = eventOf(2, n, { user: null, clientUser, headers: {}, body });
    await sink.send([{ event, destination: null }], signal);
  }
  const step = {
    step: 17,
    types: { 'daily.data.meal.created': 17 },
    rows: 2,
    files: ['dt=2026-11-17/part-17.parquet'],
  };
  writeFileSync(join(folder, '_export.jsonl'), `${JSON.stringify(step)}\n`);
  writeFileSync(join(folder, 'done.json'), JSON.stringify({ meals: 17, items: 2, rejects: 12, unknown: [] }));
  mkdirSync(join(folder, '_open', '12a17b2c12d2'), { recursive: true });
  writeFileSync(join(folder, '_open', '12a17b2c12d2', 'newest-segment'), '17 2 12');
  return sink;
}

test('an id that is a number or a plain word is not taken for what manifests and ledgers count', async () => {
  const folder = await temporaryFolder();
  const clientUsers = ['17', '2', '12', 'anna', 'daily', 'a'];
  const archive = join(folder, 'archive');
  await (await listed(archive, clientUsers)).close(signal);
  const whom = clientUsers.map((id) => ({ by: 'client_user', id }) as const);
  const { receipts, left } = await eraseFrom(folder, [folderStore(archive)], ...whom);
  expect(left).toEqual([]);
  expect(receipts.map((receipt) => receipt.records_removed)).toEqual(clientUsers.map(() => 1));
  expect(find([folder], [secretOf(1)])).toEqual([]);
});

test('such an id in a path that a manifest has is found', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const sink = await listed(archive, ['anna']);
  // Its path has the id in clear, as it is no id of its own user.
  await sink.keep(eventOf(2, 9, { id: '17', clientUser: '18' }));
  await sink.close(signal);
  const whom = { by: 'client_user', id: '17' } as const;
  expect(await eraseFrom(folder, [folderStore(archive)], whom)).toMatchObject({
    receipts: [{ not_searched: ['_manifest.jsonl'] }],
    left: [{ item: '_manifest.jsonl', requests: [] }],
  });
});

test('a receipt vouches for the change of a file that it does not name in full', async () => {
  const folder = await temporaryFolder();
  const erasure = join(folder, 'erasure');
  const request = 'ab12';
  mkdirSync(join(erasure, 'receipts'), { recursive: true });
  const after = 'f'.repeat(64);
  const archive = join(folder, 'archive');
  mkdirSync(archive);
  const line = (file: string) =>
    `${JSON.stringify({ erasure: request, at: '2026-11-21T00:00:00.000Z', file, removed: 1, records: 0, bytes: 0, sha256: after, first_received_at: null, last_received_at: null, types: {}, previous: 'x' })}\n`;
  const items = [
    { store: 's', item: 'store/u-*/*.ndjson', removed: 1, sha256_before: after, sha256_after: after },
  ];
  const signer = await openSigner(join(folder, 'key'));
  const receipt = signJson('receipt', JSON.stringify({ receipt: request, items }), signer);
  writeFileSync(join(erasure, 'receipts', `${request}.json`), receipt);
  for (const [file, found] of [
    [`u-${ID}/${ID}.ndjson`, false],
    [`v-${ID}/${ID}.ndjson`, true],
  ] as const) {
    writeFileSync(join(archive, '_manifest.jsonl'), line(file));
    const trust = { keys: new Set<string>(), receipts: receiptsIn(erasure, new Set()) };
    const { differences } = await verifyArchive(archive, { trust });
    expect(differences.some(({ code }) => code === 'receipt_differs')).toBe(found);
  }
});

test.each(['other.json', 'state.json', 'plan.json'])(
  '%s of somebody else, in a folder that is to be searched, holds back the receipt',
  async (name) => {
    const folder = await temporaryFolder();
    const store = join(folder, 'store');
    mkdirSync(store);
    writeFileSync(join(store, name), '{"user_id":12345,"note":"meals of anna"}');
    const whom = ['anna', '12345'].map((id) => ({ by: 'client_user', id }) as const);
    const { receipts, left } = await eraseFrom(folder, [folderStore(store)], ...whom);
    expect([receipts.length, left.map(({ item }) => item)]).toEqual([0, [name]]);
  },
);
