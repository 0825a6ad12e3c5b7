import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { FIRST_SEGMENT, segmentsOf } from '../support/journal-files.ts';
import { millraceProcess } from '../support/millrace.ts';
import { Place, saying } from '../support/place.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';

test('fault 08: a second receiver on one journal exits at once and names the first', async () => {
  const place = await Place.make();
  const first = await place.startProcess();
  const second = await millraceProcess(['serve', '--config', place.config]);
  expect(second).toMatchObject({ code: 1, stdout: '' });
  expect(second.stderr).toContain(`millrace: Journal is in use by another process: `);
  expect(second.stderr).toContain(`is held by process ${first.pid}`);
  await first.send(1);
});

test('what another process holds ends a receiver with an exit code on which systemd starts it again', async () => {
  const receipts = { path: join(await temporaryFolder(), 'receipts'), origin: 'example.com/made-up' };
  const first = await (await Place.make({ receipts })).startProcess();
  const second = await Place.make({ receipts });
  const refused = await millraceProcess(['serve', '--config', second.config]);
  expect(refused).toMatchObject(saying(1, 'The log of receipts is in use by another process'));
  const unit = readFileSync(new URL('../../deploy/systemd/millrace.service', import.meta.url), 'utf8');
  const [, forGood] = /^RestartPreventExitStatus=(.*)$/m.exec(unit) ?? [];
  expect(forGood?.split(' ')).not.toContain('1');
  await first.stop();
  await second.startProcess();
});

const lack = lacksProgram('mkfifo');

/** What a start says: of a file of the journal that is not plain, that; of the owner's note, which is written anew, what it holds. */
const REFUSED = [
  ...['journal.db', 'journal.db-wal', FIRST_SEGMENT].map((name) => [name, `${name} is not a plain file`]),
  ...['owner.json', 'owner.json.tmp'].map((name) => [name, 'is held by process ']),
] as [string, string][];

test.each(REFUSED)('fault 30: a symbolic link in the place of %s is not followed', async (name, said) => {
  const place = await Place.make();
  const target = place.at('elsewhere');
  writeFileSync(target, 'as it was');
  mkdirSync(place.at('journal'));
  symlinkSync(target, place.at('journal', name));
  if (name.startsWith('owner')) await place.start();
  expect(await place.run('serve')).toMatchObject(saying(1, said));
  expect(readFileSync(target, 'utf8')).toBe('as it was');
});

test.skipIf(lack !== null).each(REFUSED)(
  `fault 30: a FIFO in the place of %s is not waited for${skipped(lack)}`,
  async (name, said) => {
    const place = await Place.make();
    mkdirSync(place.at('journal'));
    execFileSync('mkfifo', [place.at('journal', name)]);
    if (name.startsWith('owner')) await place.start();
    expect(await place.run('serve')).toMatchObject(saying(1, said));
  },
);

test('fault 48: after a restore without database and note the start is refused, and journal recover resolves it', async () => {
  const gated = join(import.meta.dirname, 'gated-sink.ts');
  const place = await Place.make((folder) => ({ sinks: { gated: { type: gated, folder } } }));
  const receiver = await place.startProcess();
  const sent = await receiver.send(70);
  await receiver.kill('SIGKILL');
  const [journal, backup] = [place.at('journal'), place.at('backup')];
  mkdirSync(backup);
  for (const segment of segmentsOf(journal)) cpSync(segment, join(backup, basename(segment)));
  rmSync(journal, { recursive: true });
  cpSync(backup, journal, { recursive: true });
  expect(await place.run('serve')).toMatchObject(
    saying(1, /with 70 events received from .*, which may all wait.*millrace journal recover/s),
  );
  expect((await place.run('reconcile')).code).toBe(1);
  expect((await place.run('journal', 'recover')).stderr).toContain('say from where gated continue');
  expect(await place.ok('journal', 'recover', '--from-first', 'gated')).toBe('gated: 70 events wait\n');
  expect((await place.run('journal', 'recover', '--from', '2026-01-01')).code).toBe(3);
  writeFileSync(place.at('gate'), '');
  const again = await place.start();
  await again.drained();
  await again.stop();
  const delivered = new Set(readFileSync(place.at('delivered'), 'utf8').trimEnd().split('\n'));
  expect(delivered).toEqual(new Set(sent.keys()));
});
