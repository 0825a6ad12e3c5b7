import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newestFiles } from '../../../src/observe/admin/archive-files.ts';
import { temporaryFolder } from '../../support/folders.ts';

const AT = '2026-01-01T00:00:00.000Z';

/** A line as `archive-manifest.ts` describes it. */
function line(file: string, more: object = {}, first: object = {}): string {
  const about = { file, records: 1, bytes: 10, sha256: 'ab', first_received_at: AT, last_received_at: AT };
  return `${JSON.stringify({ ...first, ...about, types: {}, ...more, previous: 'cd' })}\n`;
}

test('pages of a manifest come from its end, in bounded steps, each line once', async () => {
  const root = await temporaryFolder();
  expect(await newestFiles(root, null)).toEqual({ files: [], parts: null, next: null });
  const names = Array.from({ length: 250 }, (_, n) => `dt=2026-01-01/${n}.ndjson.gz`);
  const path = join(root, '_manifest.jsonl');
  writeFileSync(path, names.map((name) => line(name)).join(''));
  // The writer of another file is in the middle of its line, and has a file open.
  writeFileSync(path, '{"file":"half', { flag: 'a' });
  mkdirSync(join(root, '_open/0/dt=2026-01-01'), { recursive: true });
  writeFileSync(join(root, '_open/0/dt=2026-01-01/x.part'), '');
  writeFileSync(join(root, '_open/0/lock'), '');

  const pages: string[][] = [];
  let next: number | null = null;
  do {
    const page = await newestFiles(root, next);
    expect(page.parts).toBe(1);
    pages.push(page.files.map(({ file }) => file));
    // What is closed in between moves nothing.
    if (next === null) writeFileSync(path, `half"}\n${line('later.ndjson')}`, { flag: 'a' });
    ({ next } = page);
  } while (next !== null);
  expect(pages.map(({ length }) => length)).toEqual([100, 100, 50]);
  expect(pages.flat()).toEqual(names.toReversed());
});

test('each kind of line says what it is; one that is none is passed over', async () => {
  const root = await temporaryFolder();
  const replaces = [{ file: 'a.ndjson', records: 1, bytes: 10, sha256: 'ab' }];
  const gone = { sha256: null, records: 0, bytes: 0, first_received_at: null, last_received_at: null };
  const kept = { claim_check: 'msg_1', file: 'claim-checks/k.json', event_type: 'x', bytes: 7, sha256: 'ab' };
  const lines = [
    line('a.ndjson'),
    line('all.ndjson', { replaces }),
    'null\n',
    line('../outside.ndjson'),
    `${JSON.stringify({ ...kept, body_sha256: 'ab', previous: 'cd' })}\n`,
    line('all.ndjson', { removed: 1 }, { erasure: 'r', at: AT }),
    line('a.ndjson', { ...gone, removed: 1 }, { erasure: 'r', at: AT }),
  ];
  writeFileSync(join(root, '_manifest.jsonl'), lines.join(''));
  const { files } = await newestFiles(root, null);
  expect(files.map(({ file, state, records, replaces: names }) => [file, state, records, names])).toEqual([
    ['a.ndjson', 'removed', 0, []],
    ['all.ndjson', 'erased', 1, []],
    ['claim-checks/k.json', 'kept', null, []],
    ['all.ndjson', 'compacted', 1, ['a.ndjson']],
    ['a.ndjson', 'closed', 1, []],
  ]);
});

test('a folder that is not there, or cannot be read, is an error and not an empty archive', async () => {
  const folder = await temporaryFolder();
  const [missing, file, broken] = ['missing', 'file', 'broken'].map((name) => join(folder, name));
  writeFileSync(file as string, '');
  mkdirSync(broken as string);
  symlinkSync('_open', join(broken as string, '_open'));
  for (const path of [missing, file, broken] as string[]) {
    const named = { code: 'archive_unreadable', detail: expect.stringContaining(path) as unknown };
    await expect(newestFiles(path, null)).rejects.toMatchObject(named);
  }
});
