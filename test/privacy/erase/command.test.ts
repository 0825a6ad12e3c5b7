import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eraseCommand } from '../../../src/cli/erase/command.ts';
import { tryLock } from '../../../src/lib/file-lock.ts';
import { noteOutputs } from '../../../src/privacy/erase/outputs.ts';
import { run } from '../../cli/run.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { writeConfig } from '../../support/millrace.ts';
import { eventOf, find, openJournal, userId } from './support.ts';
import { serve } from '../../support/listen.ts';

/** A folder with a config, and `erase` under it. */
async function configured(changes: (folder: string) => Readonly<Record<string, object>> = () => ({})) {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, changes(folder));
  const erase = (args: readonly string[], env = {}) => run(eraseCommand, [...args, '--config', config], env);
  return { folder, erase };
}

test('asks, lists and takes back; the folder then holds no request', async () => {
  const { erase, folder } = await configured();
  const asked = await erase([userId(1), userId(1)]);
  expect(asked.stdout).toMatch(/^request [0-9a-f]{16}: due \S+Z; until then/);
  expect(asked.stdout).not.toContain(userId(1));
  const listed = await erase(['--list']);
  expect(listed.stdout.split('\n')).toHaveLength(3);
  expect(listed.stdout).toContain(userId(1));
  const cancelled = await erase(['--cancel', userId(1).toUpperCase(), '--json']);
  expect(JSON.parse(cancelled.stdout)).toMatchObject({ status: 'cancelled' });
  expect(readdirSync(join(folder, 'erasure', 'requests'))).toEqual([]);
});

test('a request that is taken back leaves journal, archive and tables as they were, byte for byte', async () => {
  const { folder, erase } = await configured((root) => ({
    erasure: { path: join(root, 'erasure'), folders: [join(root, 'tables')] },
  }));
  mkdirSync(join(folder, 'tables'));
  writeFileSync(join(folder, 'tables', 'meals.ndjson'), `{"user_id":"${userId(1)}"}\n`);
  const journal = await openJournal(join(folder, 'journal'));
  for (const n of [1, 2, 3]) await journal.accept(eventOf(1, n));
  await journal.close();
  await writeFiles(join(folder, 'archive'), [batchOf(eventOf(1, 1))]);
  const before = bytesOf(folder);
  for (const args of [[userId(1)], ['--run'], ['--cancel', userId(1)]]) await erase(args);
  expect(bytesOf(folder)).toEqual(before);
  const gone = await erase([userId(1), '--now', '--json']);
  expect(JSON.parse(gone.stdout)).toMatchObject({ receipts: [{ records_removed: 3 + 1 + 1 }], left: [] });
  expect(find([folder], [userId(1)])).toEqual([]);
});

test('a listed folder whose disk is away is waited for; an output that is gone stands on the receipt', async () => {
  const { folder, erase } = await configured((root) => ({
    erasure: { path: join(root, 'erasure'), folders: [join(root, 'disk', 'out')] },
  }));
  const [out, gone] = [join(folder, 'disk', 'out'), join(folder, 'gone')];
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, 'meals.ndjson'), `{"user_id":"${userId(1)}"}\n`);
  await noteOutputs(join(folder, 'erasure'), [gone]);
  renameSync(join(folder, 'disk'), join(folder, 'away'));
  const waiting = await erase([userId(1), '--now', '--json']);
  expect(waiting.exit).toBe(3);
  const reason = expect.stringContaining('take it out of erasure.folders') as string;
  expect(JSON.parse(waiting.stdout)).toMatchObject({
    receipts: [],
    left: expect.arrayContaining([
      { store: out, item: '', requests: [expect.any(String)], reason },
    ]) as unknown,
  });
  renameSync(join(folder, 'away'), join(folder, 'disk'));
  const done = await erase(['--run', '--json']);
  expect(done.exit).toBe(3);
  const { receipts } = JSON.parse(done.stdout) as { receipts: { not_searched: string[] }[] };
  expect(receipts).toMatchObject([{ records_removed: 1 }]);
  expect(receipts[0]?.not_searched.join('\n')).toContain(gone);
  expect(find([out], [userId(1)])).toEqual([]);
});

test('a folder that another process is at is refused, and said to be', async () => {
  const { erase, folder } = await configured();
  mkdirSync(join(folder, 'erasure'));
  const lock = tryLock(join(folder, 'erasure', 'lock'));
  onTestFinished(() => lock?.release());
  await expect(erase(['--run'])).rejects.toThrow('is in use');
});

/** Hashes of all files but those of erasures and locks, by path. */
function bytesOf(folder: string): Map<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    files
      .filter((path) => !path.startsWith(join(folder, 'erasure')))
      // The request stays in the audit log.
      .filter((path) => !path.startsWith(join(folder, 'journal', 'audit.')))
      .sort()
      .map((path) => [path, hash('sha256', readFileSync(path), 'hex')]),
  );
}

test('with --service the service is asked too, to delete and to undo it', async () => {
  const { erase } = await configured();
  const asked: string[] = [];
  const url = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.setHeader('content-type', 'application/json').end('{"success":true}');
  });
  for (const args of [[userId(1)], ['--cancel', userId(1)]])
    await erase([...args, '--service', '--base-url', url], { MILLRACE_SERVICE_API_KEY: 'made-up-key' });
  expect(asked).toEqual([`DELETE /v2/user/${userId(1)}`, `POST /v2/user/undo_delete?user_id=${userId(1)}`]);
});

test('an id without data gets an empty receipt, which does not contain the id', async () => {
  const { erase, folder } = await configured();
  const { stdout, exit } = await erase(['unknown@made.up', '--now', '--json']);
  expect(exit).toBe(0);
  const { receipts } = JSON.parse(stdout) as { receipts: [{ receipt: string; subject_hash: string }] };
  expect(receipts).toMatchObject([{ records_removed: 0, items: [] }]);
  const stored = readFileSync(join(folder, 'erasure', 'receipts', `${receipts[0].receipt}.json`), 'utf8');
  expect(JSON.parse(stored)).toEqual(receipts[0]);
  expect(stored).not.toContain('unknown');
  const listed = await erase(['--list', '--json']);
  expect(JSON.parse(listed.stdout)).toMatchObject({
    waiting: [],
    erased: [{ hash: receipts[0].subject_hash, by: 'user', scoped: false }],
  });
  expect((await erase(['customer-17', '--now'])).stderr).toMatch(/nothing was found.*--client-user/);
});

test('sinks that have events where no erasure looks are named', async () => {
  const own = `export const parseOptions = (options) => options;
    export const createSink = () => { throw new Error('an erasure opens no sink'); };`;
  const says = `${own} export const describe = ({ path }) => ({ folders: [{ path, option: 'path', erase: true }] });`;
  const { erase, folder } = await configured((root) => {
    writeFileSync(join(root, 'silent.mjs'), own);
    writeFileSync(join(root, 'says.mjs'), says);
    return {
      sinks: {
        archive: { type: 'files', path: join(root, 'archive') },
        says: { type: './says.mjs', path: join(root, 'says') },
        silent: { type: './silent.mjs', path: join(root, 'silent') },
        services: { type: 'http', url: 'https://example.com/hooks', sign: 'original' },
      },
    };
  });
  const { stderr } = await erase([userId(1), '--now']);
  expect(/^not reached: events already sent to (.*);/m.exec(stderr)?.[1]).toBe('silent, services');
  expect((await erase(['--run'])).stderr).not.toContain('not reached');
  const { stdout } = await erase([userId(2), '--now', '--json']);
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
  const { erase } = await configured();
  await expect(erase(args)).rejects.toThrow(reason);
});

test('a list without its key is refused, for it would let erased users in', async () => {
  const { erase, folder } = await configured();
  await erase([userId(1), '--now']);
  rmSync(join(folder, 'erasure', 'key'));
  await expect(erase(['--list'])).rejects.toThrow('without its key');
});
