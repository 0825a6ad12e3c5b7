import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eraseCommand } from '../../src/cli/erase/command.ts';
import { systemClock } from '../../src/core/clock.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { tryLock } from '../../src/lib/file-lock.ts';
import { run } from '../cli/run.ts';
import { filesSink, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { eventOf, find, JOURNAL_LIMITS, userId } from './support.ts';
import { serve } from '../support/listen.ts';

/** A service that notes what it is asked, and says that it succeeded. */
async function startService(): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const url = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.setHeader('content-type', 'application/json').end('{"success":true}');
  });
  return { url, asked };
}

async function configured(): Promise<{ config: string; folder: string }> {
  const folder = await temporaryFolder();
  return { folder, config: writeConfig(folder, { erasure: { path: join(folder, 'erasure') } }) };
}

test('asks, lists and takes back; the folder then holds no request', async () => {
  const { config, folder } = await configured();
  const asked = await run(eraseCommand, [userId(1), userId(1), '--config', config]);
  expect(asked.stdout).toMatch(/^request [0-9a-f]{16}: due \S+Z; until then/);
  expect(asked.stdout).not.toContain(userId(1));
  const listed = await run(eraseCommand, ['--list', '--config', config]);
  expect(listed.stdout.split('\n')).toHaveLength(3);
  expect(listed.stdout).toContain(userId(1));
  const cancelled = await run(eraseCommand, [
    '--cancel',
    userId(1).toUpperCase(),
    '--json',
    '--config',
    config,
  ]);
  expect(JSON.parse(cancelled.stdout)).toMatchObject({ status: 'cancelled' });
  expect(readdirSync(join(folder, 'erasure', 'requests'))).toEqual([]);
});

test('a request that is taken back leaves journal, archive and tables as they were, byte for byte', async () => {
  const folder = await temporaryFolder();
  const tables = join(folder, 'tables');
  const config = writeConfig(folder, { erasure: { path: join(folder, 'erasure'), folders: [tables] } });
  mkdirSync(tables);
  writeFileSync(join(tables, 'meals.ndjson'), `{"user_id":"${userId(1)}"}\n`);
  const journal = await SqliteJournal.open({
    ...JOURNAL_LIMITS,
    path: join(folder, 'journal'),
    create: true,
    clock: systemClock,
    onFailure: () => undefined,
  });
  for (const n of [1, 2, 3]) await journal.accept(eventOf(1, n));
  await journal.close();
  const { sink } = filesSink(join(folder, 'archive'));
  await sink.open();
  await sink.send([{ event: eventOf(1, 1), destination: null }], signal);
  await sink.close(signal);
  const before = bytesOf(folder);
  await run(eraseCommand, [userId(1), '--config', config]);
  await run(eraseCommand, ['--run', '--config', config]);
  await run(eraseCommand, ['--cancel', userId(1), '--config', config]);
  expect(bytesOf(folder)).toEqual(before);
  const gone = await run(eraseCommand, [userId(1), '--now', '--json', '--config', config]);
  expect(JSON.parse(gone.stdout)).toMatchObject({ receipts: [{ records_removed: 3 + 1 + 1 }], left: [] });
  expect(find([folder], [userId(1)])).toEqual([]);
});

test('a folder that another process is at is refused, and said to be', async () => {
  const { config, folder } = await configured();
  mkdirSync(join(folder, 'erasure'));
  const lock = tryLock(join(folder, 'erasure', 'lock'));
  onTestFinished(() => lock?.release());
  await expect(run(eraseCommand, ['--run', '--config', config])).rejects.toThrow('is in use');
});

/** Hashes of all files but those of erasures and locks, by path. */
function bytesOf(folder: string): Map<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    files
      .filter((path) => !path.startsWith(join(folder, 'erasure')))
      // That it was asked for is noted for good.
      .filter((path) => !path.startsWith(join(folder, 'journal', 'audit.')))
      .sort()
      .map((path) => [path, hash('sha256', readFileSync(path), 'hex')]),
  );
}

test('with --service the service is asked too, to delete and to undo it', async () => {
  const { config } = await configured();
  const { url, asked } = await startService();
  const service = ['--service', '--base-url', url, '--config', config];
  const env = { MILLRACE_SERVICE_API_KEY: 'made-up-key' };
  await run(eraseCommand, [userId(1), ...service], env);
  await run(eraseCommand, ['--cancel', userId(1), ...service], env);
  expect(asked).toEqual([`DELETE /v2/user/${userId(1)}`, `POST /v2/user/undo_delete?user_id=${userId(1)}`]);
});

test('an id that nobody has gets a receipt of nothing, which does not hold it', async () => {
  const { config, folder } = await configured();
  const { stdout, exit } = await run(eraseCommand, ['nobody@made.up', '--now', '--json', '--config', config]);
  expect(exit).toBe(0);
  const { receipts } = JSON.parse(stdout) as { receipts: [{ receipt: string; subject_hash: string }] };
  expect(receipts).toMatchObject([{ records_removed: 0, items: [] }]);
  const stored = readFileSync(join(folder, 'erasure', 'receipts', `${receipts[0].receipt}.json`), 'utf8');
  expect(JSON.parse(stored)).toEqual(receipts[0]);
  expect(stored).not.toContain('nobody');
  const listed = await run(eraseCommand, ['--list', '--json', '--config', config]);
  expect(JSON.parse(listed.stdout)).toMatchObject({
    waiting: [],
    erased: [{ hash: receipts[0].subject_hash, by: 'user', scoped: false }],
  });
});

test('it says when it has found nothing', async () => {
  const { config } = await configured();
  const { stderr } = await run(eraseCommand, ['customer-17', '--now', '--config', config]);
  expect(stderr).toMatch(/nothing was found.*--client-user/);
});

test('sinks that have events where no erasure looks are named', async () => {
  const folder = await temporaryFolder();
  const own = `export const parseOptions = (options) => options;
    export const createSink = () => { throw new Error('an erasure opens no sink'); };`;
  writeFileSync(join(folder, 'silent.mjs'), own);
  const folders = "[{ path, option: 'path', erase: true }]";
  writeFileSync(
    join(folder, 'says.mjs'),
    `${own} export const describe = ({ path }) => ({ folders: ${folders} });`,
  );
  const config = writeConfig(folder, {
    erasure: { path: join(folder, 'erasure') },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      says: { type: './says.mjs', path: join(folder, 'says') },
      silent: { type: './silent.mjs', path: join(folder, 'silent') },
      services: { type: 'http', url: 'https://example.com/hooks', sign: 'original' },
    },
  });
  const { stderr } = await run(eraseCommand, [userId(1), '--now', '--config', config]);
  expect(/^not reached: events already sent to (.*);/m.exec(stderr)?.[1]).toBe('silent, services');
  expect((await run(eraseCommand, ['--run', '--config', config])).stderr).not.toContain('not reached');
  const { stdout } = await run(eraseCommand, [userId(2), '--now', '--json', '--config', config]);
  const beyond = { not_reached: ['silent', 'services'] };
  expect(JSON.parse(stdout)).toMatchObject({ ...beyond, receipts: [beyond] });
  const receipts = join(folder, 'erasure', 'receipts');
  const verified = await run(eraseCommand, ['verify', join(receipts, readdirSync(receipts)[0] ?? '')]);
  expect(verified.stdout).toContain(
    'not reached by the erasure: sink silent\nnot reached by the erasure: sink services\n',
  );
});

test.each([
  [[], 'name a user'],
  [['--list', '--run'], 'name one of'],
  [['--run', 'somebody'], 'take no user'],
  [['--client-user', 'somebody', '--service'], '--service needs the user id'],
])('%j is refused', async (args, reason) => {
  const { config } = await configured();
  await expect(run(eraseCommand, [...args, '--config', config])).rejects.toThrow(reason);
});

test('a list without its key is refused, for it would let erased users in', async () => {
  const { config, folder } = await configured();
  await run(eraseCommand, [userId(1), '--now', '--config', config]);
  rmSync(join(folder, 'erasure', 'key'));
  await expect(run(eraseCommand, ['--list', '--config', config])).rejects.toThrow('without its key');
});
