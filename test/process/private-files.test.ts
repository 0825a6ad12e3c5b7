import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FIRST_SEGMENT } from '../support/journal-files.ts';
import { Place } from '../support/place.ts';

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('only its user can read a file of the journal, also one of a journal made before', async () => {
  const place = await Place.make();
  const journal = place.at('journal');
  const open = (): string[] => readdirSync(journal).filter((name) => modeOf(join(journal, name)) !== '600');
  const first = await place.startProcess();
  await first.send(1);
  expect([modeOf(journal), open()]).toEqual(['700', []]);
  // The token of the admin API, which it asks for from the first start.
  const { authorization } = first.authorization;
  const token = authorization.replace('Bearer ', '');
  expect(token).toMatch(/^[\w-]{43}$/);
  expect((await fetch(`${first.adminUrl}/api/status`)).status).toBe(401);
  await first.kill('SIGKILL');
  expect(first.stderr).not.toContain('can read this folder');
  expect(first.stderr + first.stdout).not.toContain(token);

  for (const name of readdirSync(journal)) chmodSync(join(journal, name), 0o664);
  const next = await place.startProcess();
  await next.send(1, 1);
  expect(readdirSync(journal)).toEqual(expect.arrayContaining(['journal.db-wal', FIRST_SEGMENT]));
  expect(open()).toEqual([]);
  expect((await fetch(`${next.adminUrl}/api/status`, { headers: { authorization } })).status).toBe(401);
  await next.stop();
  expect(existsSync(join(journal, 'owner.json'))).toBe(false);
});

test('a journal or erasure folder that others can read is warned of at the start', async () => {
  const place = await Place.make();
  for (const name of ['journal', 'erasure']) {
    mkdirSync(place.at(name));
    chmodSync(place.at(name), 0o755);
  }
  const receiver = await place.startProcess();
  const warned = receiver.logLines().filter(({ msg }) => String(msg).startsWith('other users can read'));
  expect(warned.map(({ key, mode, level }) => [key, mode, level])).toEqual([
    ['journal.path', '755', 40],
    ['erasure.path', '755', 40],
  ]);
  await place.ok('status');
});
