import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { SILENT } from '../../src/core/sink.ts';
import { ErasedUsers } from '../../src/erase/erased-users.ts';
import { Follower, untilFollowed } from '../../src/erase/followers.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';

const NEVER = new AbortController().signal;

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
  const block = (id: string): Promise<void> =>
    other.block({ by: 'user', id, team: null, request: 'made-up' }, '2026-01-01T00:00:00Z');
  const name = expect.stringContaining(`-${process.pid}-`) as string;
  // Of what there was before it began it has not said anything yet either.
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER, 0)).toEqual([name]);
  done.pop()?.();
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER)).toEqual([]);
  await block('gone');
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER, 300)).toEqual([name]);
  done.pop()?.();
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER)).toEqual([]);
  await follower.stop(true);
  expect(readdirSync(join(folder, 'followers'))).toEqual([]);
});

test('a machine that sees other numbers and times of the same list has the same list', async () => {
  const [folder, seenThere] = [await temporaryFolder(), join(await temporaryFolder(), 'mounted')];
  const users = ErasedUsers.open(folder);
  await users.block({ by: 'user', id: 'gone', team: null, request: 'made-up' }, '2026-01-01T00:00:00Z');
  cpSync(folder, seenThere, { recursive: true });
  const there = ErasedUsers.open(seenThere);
  const follower = Follower.start({ folder, users: there, log: SILENT, settle: () => Promise.resolve() });
  onTestFinished(() => follower.stop(true));
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER)).toEqual([]);
  await users.block({ by: 'user', id: 'too', team: null, request: 'made-up' }, '2026-01-01T00:00:00Z');
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER, 300)).toHaveLength(1);
});

test('one that was killed is waited for no more, and leaves nothing', async () => {
  const folder = await temporaryFolder();
  const program = fileURLToPath(new URL('stuck-follower-child.ts', import.meta.url));
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER, 0)).toEqual([
    expect.stringContaining(`-${child.pid}-`),
  ]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER)).toEqual([]);
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
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER)).toEqual([]);
  expect(tries).toBe(3);
  expect(said).toEqual([
    `events of an erased user may still be on their way: ${JSON.stringify({ path: folder, error: 'the store is down' })}`,
  ]);
  await follower.stop(true);
});

test('who finds its lock gone takes another, so that erasures go on to wait for it', async () => {
  const folder = await temporaryFolder();
  const users = ErasedUsers.open(folder);
  const follower = Follower.start({ folder, users, settle: () => Promise.resolve(), log: SILENT });
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER)).toEqual([]);
  const home = join(folder, 'followers');
  rmSync(home, { recursive: true });
  mkdirSync(home);
  await until('another lock', () => readdirSync(home).some((name) => name.endsWith('.lock')));
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER)).toEqual([]);
  await follower.stop(true);
  expect(readdirSync(home)).toEqual([]);
});

test('who still has something on its way when it stops keeps its lock', async () => {
  const folder = await temporaryFolder();
  const users = ErasedUsers.open(folder);
  const never = new Promise<void>(() => undefined);
  const follower = Follower.start({ folder, users, settle: () => never, log: SILENT });
  await follower.stop(false);
  expect(await untilFollowed(folder, ErasedUsers.open(folder), NEVER, 0)).toHaveLength(1);
});
