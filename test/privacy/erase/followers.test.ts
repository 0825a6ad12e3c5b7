import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { SILENT } from '../../../src/core/sink.ts';
import { ErasedUsers } from '../../../src/privacy/erase/erased-users.ts';
import { Follower, untilFollowed } from '../../../src/privacy/erase/followers.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { until } from '../../support/until.ts';

const NEVER = new AbortController().signal;

function block(users: ErasedUsers, id: string): Promise<void> {
  return users.block({ by: 'user', id, team: null, request: 'made-up' }, '2026-01-01T00:00:00Z');
}

/** The followers that an erasure waits for which begins now; for so many milliseconds, or until there are none. */
const followersOf = (folder: string, ms?: number): Promise<readonly string[]> =>
  untilFollowed(folder, ErasedUsers.open(folder), NEVER, ms);

test('an erasure hears of each process that it may still have events of the user, and when it has none', async () => {
  const folder = await temporaryFolder();
  const [own, other] = [ErasedUsers.open(folder), ErasedUsers.open(folder)];
  const done: (() => void)[] = [];
  const follower = Follower.start({
    folder,
    users: own,
    log: SILENT,
    settle: () => new Promise((resolve) => done.push(resolve)),
  });
  onTestFinished(own.follow());
  const name = expect.stringContaining(`-${process.pid}-`) as string;
  // Of what there was before it began it has not said anything yet either.
  expect(await followersOf(folder, 0)).toEqual([name]);
  done.pop()?.();
  expect(await followersOf(folder)).toEqual([]);
  await block(other, 'gone');
  expect(await followersOf(folder, 300)).toEqual([name]);
  done.pop()?.();
  expect(await followersOf(folder)).toEqual([]);
  await follower.stop(true);
  expect(readdirSync(join(folder, 'followers'))).toEqual([]);
});

test('a machine that sees other numbers and times of the same list has the same list', async () => {
  const [folder, seenThere] = [await temporaryFolder(), join(await temporaryFolder(), 'mounted')];
  const users = ErasedUsers.open(folder);
  await block(users, 'gone');
  cpSync(folder, seenThere, { recursive: true });
  const there = ErasedUsers.open(seenThere);
  const follower = Follower.start({ folder, users: there, log: SILENT, settle: () => Promise.resolve() });
  onTestFinished(() => follower.stop(true));
  expect(await followersOf(folder)).toEqual([]);
  await block(users, 'too');
  expect(await followersOf(folder, 300)).toHaveLength(1);
});

test('one that was killed is waited for no more, and leaves nothing', async () => {
  const folder = await temporaryFolder();
  const program = fileURLToPath(new URL('stuck-follower-child.ts', import.meta.url));
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  expect(await followersOf(folder, 0)).toEqual([expect.stringContaining(`-${child.pid}-`)]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await followersOf(folder)).toEqual([]);
  expect(readdirSync(join(folder, 'followers'))).toEqual([]);
});

test('what cannot be settled is said once, and tried again', async () => {
  const folder = await temporaryFolder();
  const users = ErasedUsers.open(folder);
  const said: string[] = [];
  let tries = 0;
  const settle = (): Promise<void> =>
    ++tries < 3 ? Promise.reject(new Error('the store is down')) : Promise.resolve();
  const warn = (fields: object, message: string): void =>
    void said.push(`${message}: ${JSON.stringify(fields)}`);
  const follower = Follower.start({ folder, users, settle, log: { ...SILENT, warn } });
  expect(await followersOf(folder)).toEqual([]);
  expect(tries).toBe(3);
  expect(said).toEqual([
    `events of an erased user may still be on their way: ${JSON.stringify({ path: folder, error: 'the store is down' })}`,
  ]);
  await follower.stop(true);
});

test('who finds its lock gone takes another, so that erasures still wait for it', async () => {
  const folder = await temporaryFolder();
  const users = ErasedUsers.open(folder);
  const follower = Follower.start({ folder, users, settle: () => Promise.resolve(), log: SILENT });
  expect(await followersOf(folder)).toEqual([]);
  const home = join(folder, 'followers');
  rmSync(home, { recursive: true });
  mkdirSync(home);
  await until('another lock', () => readdirSync(home).some((name) => name.endsWith('.lock')));
  expect(await followersOf(folder)).toEqual([]);
  await follower.stop(true);
  expect(readdirSync(home)).toEqual([]);
});

test('who still has something on its way when it stops keeps its lock', async () => {
  const folder = await temporaryFolder();
  const users = ErasedUsers.open(folder);
  const never = new Promise<void>(() => undefined);
  const follower = Follower.start({ folder, users, settle: () => never, log: SILENT });
  await follower.stop(false);
  expect(await followersOf(folder, 0)).toHaveLength(1);
});

test('a list that another process adds to is followed, and read again once it can be', async () => {
  const folder = await temporaryFolder();
  const [own, other] = [ErasedUsers.open(folder), ErasedUsers.open(folder)];
  const has = (user: string): boolean => own.has({ team: null, user, clientUser: null });
  onTestFinished(own.follow());
  await block(other, 'first');
  await until('the first', () => has('first'));
  const [key, away] = [join(folder, 'key'), join(folder, 'away')];
  renameSync(key, away);
  await block(other, 'second');
  const now = performance.now();
  await until('another look', () => performance.now() - now > 20);
  expect([has('first'), has('second')]).toEqual([true, false]);
  // A look fails although the list has not changed since the last one.
  expect(() => own.refresh()).toThrow('without its key');
  renameSync(away, key);
  await until('the second', () => has('second'));
  // As when the share that it lies on is not mounted any more.
  const list = join(folder, 'erased.jsonl');
  renameSync(list, away);
  expect(() => own.reload()).toThrow('is gone');
  await expect(own.look()).rejects.toThrow('ENOENT');
  expect([has('first'), has('second')]).toEqual([true, true]);
  renameSync(away, list);
  await block(other, 'third');
  await until('the third', () => has('third'));
});

test('a list with a line of another format, or with a damaged one, is refused', async () => {
  const folder = await temporaryFolder();
  const users = ErasedUsers.open(folder);
  await block(users, 'first');
  const list = join(folder, 'erased.jsonl');
  const { tag: _, ...line } = JSON.parse(readFileSync(list, 'utf8')) as Record<string, unknown>;
  const whole = readFileSync(list, 'utf8');
  appendFileSync(list, `${JSON.stringify(line)}\n`);
  expect(() => ErasedUsers.open(folder)).toThrow('erased.jsonl has a line without a hash or a tag');
  writeFileSync(list, `${whole.slice(0, 40)}\n${whole}`);
  expect(() => ErasedUsers.open(folder)).toThrow('erased.jsonl: line 1 is damaged');
});
