import { appendFileSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ErasedUsers } from '../../src/erase/erased-users.ts';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';

test('a list that another process adds to is followed, and read again once it can be', async () => {
  const folder = await temporaryFolder();
  const [own, other] = [ErasedUsers.open(folder), ErasedUsers.open(folder)];
  const block = (id: string): Promise<void> =>
    other.block({ by: 'user', id, team: null, request: 'made-up' }, '2026-01-01T00:00:00Z');
  const has = (user: string): boolean => own.has({ team: null, user, clientUser: null });
  onTestFinished(own.follow());
  await block('first');
  await until('the first', () => has('first'));
  const [key, away] = [join(folder, 'key'), join(folder, 'away')];
  renameSync(key, away);
  await block('second');
  const now = performance.now();
  await until('another look', () => performance.now() - now > 20);
  expect([has('first'), has('second')]).toEqual([true, false]);
  // Whoever looks each minute is told, though the list is as it was at the last look.
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
  await block('third');
  await until('the third', () => has('third'));
});

test('a list with a line of another format is refused', async () => {
  const folder = await temporaryFolder();
  const users = ErasedUsers.open(folder);
  await users.block({ request: 'r1', by: 'user', id: 'first', team: null }, '2026-11-21T00:00:00.000Z');
  const list = join(folder, 'erased.jsonl');
  const { tag: _, ...line } = JSON.parse(readFileSync(list, 'utf8')) as Record<string, unknown>;
  appendFileSync(list, `${JSON.stringify(line)}\n`);
  expect(() => ErasedUsers.open(folder)).toThrow('erased.jsonl has a line without a tag');
});
