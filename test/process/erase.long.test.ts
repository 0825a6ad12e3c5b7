import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyArchive } from '../../src/archive/verify.ts';
import type { ErasureResult } from '../../src/core/erasure.ts';
import { eventOf, find, secretOf, userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const GONE = 7;
const SINK = join(import.meta.dirname, 'refusing-sink.ts');

/** Events of three users: to the archive, some also to a sink that refuses them, some invalid. */
async function sendAll(url: string, from: number): Promise<void> {
  for (let n = from; n < from + 20; n += 1) {
    for (const user of [GONE, 8, 9]) {
      const event = eventOf(user, n);
      expect((await postSigned(url, event.body, { id: event.id })).status).toBe(202);
    }
  }
  for (const user of [GONE, 8]) {
    const invalid = { user_id: userId(user), note: secretOf(user) };
    const { json } = await postSigned(url, Buffer.from(JSON.stringify(invalid)), {
      id: `msg_invalid_${user}_${from}`,
    });
    expect(json).toMatchObject({ status: 'quarantined' });
  }
}

function configIn(folder: string): string {
  return writeConfig(folder, {
    erasure: { path: join(folder, 'erasure'), grace: '1h' },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      refuses: { type: SINK },
    },
  });
}

test('a running receiver erases a user in journal, open files, quarantine and dead letters, and drops what still comes', async () => {
  const folder = await temporaryFolder();
  const config = configIn(folder);
  const receiver = await ReceiverProcess.start(config);
  await sendAll(receiver.url, 0);
  await receiver.drained();
  const before = await until('dead letters', async () => {
    const status = await receiver.status();
    return status.journal.deadLetters === 60 ? status : null;
  });
  expect(before.journal).toMatchObject({ quarantined: 2 });
  expect(find([join(folder, 'archive')], [secretOf(GONE)]).map((path) => path.endsWith('.part'))).toEqual([
    true,
  ]);

  const run = await millrace(['erase', userId(GONE), '--now', '--json', '--config', config]);
  expect([run.code, run.stderr]).toEqual([0, '']);
  const { receipts, left } = JSON.parse(run.stdout) as ErasureResult;
  expect(left).toEqual([]);
  const [receipt] = receipts;
  expect(receipt?.records_removed).toBe(20 + 20 + 1 + 20);
  expect(receipt?.items.map(({ item, removed }) => [item.replace(/.*\.gz$/, 'file'), removed])).toEqual([
    ['events', 20],
    ['quarantine', 1],
    ['dead_letters', 20],
    ['file', 20],
  ]);
  // Also while it runs: the log of the database, the log of the process, the folder of the erasure itself.
  appendFileSync(join(folder, 'log'), receiver.stderr + run.stdout);
  const gone = [userId(GONE), secretOf(GONE), `made-up-client-${GONE}`];
  expect(find([folder], gone)).toEqual([]);
  expect(find([folder], [secretOf(8)]).length).toBeGreaterThan(0);

  const again = eventOf(GONE, 100);
  const { status, json } = await postSigned(receiver.url, again.body, { id: again.id });
  expect([status, json]).toEqual([202, { status: 'erased', id: again.id }]);
  const other = eventOf(8, 100);
  expect((await postSigned(receiver.url, other.body, { id: other.id })).json).toMatchObject({
    status: 'accepted',
  });
  await receiver.drained();
  expect(find([folder], gone)).toEqual([]);

  await receiver.kill('SIGKILL');
  const restarted = await Receiver.start(config);
  expect((await postSigned(restarted.url, again.body, { id: again.id })).json).toMatchObject({
    status: 'erased',
  });
  const lifted = await millrace(['erase', '--cancel', userId(GONE), '--json', '--config', config]);
  expect([lifted.code, JSON.parse(lifted.stdout)]).toEqual([0, { status: 'lifted' }]);
  expect((await postSigned(restarted.url, again.body, { id: again.id })).json).toMatchObject({
    status: 'accepted',
  });
  expect(await restarted.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect((await verifyArchive(join(folder, 'archive'))).differences).toEqual([]);
  const users = [...(await readBack(join(folder, 'archive'))).values()]
    .flat()
    .map(({ record }) => record.user_id);
  expect(users.filter((user) => user === userId(GONE))).toHaveLength(1);
  expect(users.filter((user) => user === userId(8))).toHaveLength(21);
});

test('a receiver performs by itself what is due, and continues with what a kill -9 interrupted', async () => {
  const folder = await temporaryFolder();
  const config = configIn(folder);
  const receiver = await ReceiverProcess.start(config);
  await sendAll(receiver.url, 0);
  await receiver.drained();
  await receiver.kill('SIGKILL');
  const asked = await millrace(['erase', userId(GONE), '--json', '--config', config]);
  const { request } = JSON.parse(asked.stdout) as { request: string };
  const nothing = await millrace(['erase', '--run', '--config', config]);
  expect([nothing.code, nothing.stderr]).toEqual([0, 'nothing is due\n']);
  // As if an hour had gone by, and a run had been killed as it began.
  const file = join(folder, 'erasure', 'requests', `${request}.json`);
  const due = { ...(JSON.parse(readFileSync(file, 'utf8')) as object), begun_at: '2026-11-21T00:00:00.000Z' };
  writeFileSync(file, JSON.stringify(due));
  const refused = await millrace(['erase', '--cancel', userId(GONE), '--config', config]);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('Erasure has already begun') as string,
  ]);
  const next = await Receiver.start(config);
  const receipt = join(folder, 'erasure', 'receipts', `${request}.json`);
  // The run continues while this looks, and takes files away: only these are looked for.
  await until('the receipt', () => existsSync(receipt));
  const progress = join(folder, 'erasure', 'progress.jsonl');
  await until('the end of the run', () => !existsSync(file) && !existsSync(progress));
  // Files that it replaces must not go while they are listed.
  await next.kill('SIGTERM');
  expect(find([folder], [userId(GONE), secretOf(GONE)])).toEqual([]);
});

test('without a receiver the command works on the folders', async () => {
  const folder = await temporaryFolder();
  const config = configIn(folder);
  const receiver = await ReceiverProcess.start(config);
  await sendAll(receiver.url, 0);
  await receiver.drained();
  await receiver.kill('SIGKILL');
  const run = await millrace(['erase', userId(GONE), '--now', '--json', '--config', config]);
  expect([run.code, run.stderr]).toEqual([0, '']);
  expect(find([folder], [userId(GONE), secretOf(GONE)])).toEqual([]);
  expect(find([folder], [secretOf(8)]).length).toBeGreaterThan(0);
});
