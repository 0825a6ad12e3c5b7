import { readdirSync, readFileSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { ErasureResult } from '../../src/core/erasure.ts';
import type { ReconcileReport } from '../../src/reconcile/report.ts';
import { eventOf, userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const GONE = 7;
const STAYS = 8;

interface Scene {
  readonly old: string;
  /** Writes the config anew: the only sink is this one. */
  readonly configure: (path: string, sink?: string) => string;
  readonly path: (name: string) => string;
}

/** A receiver that was killed with unfinished files in `old`: so many events of each of two users. */
async function killedWith(events: number): Promise<Scene> {
  const folder = await temporaryFolder();
  const path = (name: string): string => join(folder, name);
  const configure: Scene['configure'] = (place, sink = 'archive') =>
    writeConfig(folder, { sinks: { [sink]: { type: 'files', path: path(place) } } });
  const receiver = await ReceiverProcess.start(configure('old'));
  for (let n = 0; n < events; n += 1)
    for (const user of [GONE, STAYS]) {
      const { id, body } = eventOf(user, n);
      expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    }
  await receiver.drained();
  await receiver.kill('SIGKILL');
  expect(usersIn(path('old'), '.part')).toHaveLength(2 * events);
  expect(usersIn(path('old'), '.gz')).toEqual([]);
  return { old: path('old'), configure, path };
}

/** Whose the records are in the files of a folder that end so. */
function usersIn(folder: string, extension: '.part' | '.gz'): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(extension))
    .flatMap((name) => {
      const bytes = readFileSync(join(folder, name));
      const lines = (extension === '.gz' ? gunzipSync(bytes) : bytes).toString().trimEnd().split('\n');
      return lines.map((line) => (JSON.parse(line) as { user_id: string }).user_id);
    });
}

const times = (count: number, user: number): string[] => Array.from({ length: count }, () => userId(user));

async function erase(config: string): Promise<{ code: number | null; result: ErasureResult; said: string }> {
  const run = await millrace(['erase', userId(GONE), '--now', '--json', '--config', config]);
  return { code: run.code, result: JSON.parse(run.stdout) as ErasureResult, said: run.stderr };
}

async function verified(folder: string, config: string): Promise<void> {
  const { code, stdout, stderr } = await millrace(['archive', 'verify', folder, '--config', config]);
  expect(code, stdout + stderr).toBe(0);
}

async function reconciled(config: string): Promise<{ code: number | null; report: ReconcileReport }> {
  const { code, stdout, stderr } = await millrace(['reconcile', '--json', '--config', config]);
  expect(stdout, stderr).not.toBe('');
  return { code, report: JSON.parse(stdout) as ReconcileReport };
}

test('an erasure finds the user in an unfinished file of an earlier config, and the file comes back without the user', async () => {
  const { old, configure } = await killedWith(3);
  const { code, result } = await erase(configure('new'));
  expect([code, result.left, result.receipts[0]?.stores]).toEqual([
    0,
    [],
    expect.arrayContaining([old]) as unknown,
  ]);
  const receiver = await ReceiverProcess.start(configure('old'));
  expect((await millrace(['flush', '--config', configure('old')])).code).toBe(0);
  expect(usersIn(old, '.gz')).toEqual(times(3, STAYS));
  expect(usersIn(old, '.part')).toEqual([]);
  await receiver.kill('SIGTERM');
  await verified(old, configure('old'));
});

test('a start finishes what an earlier config left unfinished, under its own archive', async () => {
  const { old, configure, path } = await killedWith(5);
  const config = configure('new');
  const receiver = await ReceiverProcess.start(config);
  await until('the finished file', () => usersIn(old, '.gz').length === 10);
  await until('no unfinished file', () => usersIn(old, '.part').length === 0);
  await receiver.kill('SIGTERM');
  await verified(old, config);
  expect(usersIn(path('new'), '.gz')).toEqual([]);
  const { code, report } = await reconciled(config);
  expect([code, report.sinks[0]]).toMatchObject([0, { sink: 'archive', delivered: 10, missing: 0 }]);
});

test('with the sink removed, a start finishes its files, and what is missing of them is missing in reconcile', async () => {
  const { old, configure } = await killedWith(5);
  const config = configure('new', 'other');
  const receiver = await ReceiverProcess.start(config);
  await until('the finished file', () => usersIn(old, '.gz').length === 10);
  await until('no unfinished file', () => usersIn(old, '.part').length === 0);
  await receiver.kill('SIGTERM');
  await verified(old, config);
  const { code, report } = await reconciled(config);
  expect([code, report.sinks.find(({ sink }) => sink === 'archive')]).toMatchObject([
    0,
    { delivered: 10, missing: 0, counted_from: 'files' },
  ]);
  const file = readdirSync(old, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('.gz'));
  unlinkSync(join(old, file ?? ''));
  const after = await reconciled(config);
  expect([after.code, after.report.differences]).toMatchObject([
    4,
    [{ code: 'missing', sink: 'archive', count: 10 }],
  ]);
});

test('a file that no erasure knew of is finished without the users that were erased meanwhile', async () => {
  const { old, configure, path } = await killedWith(3);
  // As an earlier program left it, which noted an archive with its first finished file.
  rmSync(path('erasure/heads'), { recursive: true, force: true });
  expect((await erase(configure('new'))).code).toBe(0);
  const config = configure('old');
  const receiver = await ReceiverProcess.start(config);
  expect((await millrace(['flush', '--config', config])).code).toBe(0);
  expect(usersIn(old, '.gz')).toEqual(times(3, STAYS));
  await receiver.kill('SIGTERM');
  await verified(old, config);
});

test('an earlier archive that is out of reach is named, the receiver starts, erase exits 3; it is finished when it is back', async () => {
  const { old, configure, path } = await killedWith(3);
  renameSync(old, path('elsewhere'));
  const config = configure('new');
  const offline = await erase(config);
  expect([offline.code, offline.result.receipts]).toEqual([3, []]);
  expect(offline.said).toContain(old);
  const receiver = await ReceiverProcess.start(config);
  await until('a word in the log', () => receiver.stderr.includes(old));
  const status = await millrace(['status', '--config', config]);
  expect(status.stdout).toContain(old);
  const { code, result } = await erase(config);
  expect([code, result.left.map(({ store }) => store)]).toEqual([3, [old]]);
  expect((await reconciled(config)).report.notes.join()).toContain(old);
  renameSync(path('elsewhere'), old);
  await until('the finished file', () => usersIn(old, '.gz').length === 3);
  expect((await millrace(['erase', '--run', '--config', config])).code).toBe(0);
  expect([usersIn(old, '.gz'), usersIn(old, '.part')]).toEqual([times(3, STAYS), []]);
  await until('all well', async () => !(await millrace(['status', '--config', config])).stdout.includes(old));
  await receiver.kill('SIGTERM');
  await verified(old, config);
});
