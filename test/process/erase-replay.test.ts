import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventOf, find, secretOf, userId } from '../erase/support.ts';
import { filesSink, ids, signal } from '../sinks/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

test('a replay of an archive that another machine still has leaves the erased user out, and says so', async () => {
  const folder = await temporaryFolder();
  const old = join(folder, 'old');
  const { sink } = filesSink(old);
  await sink.open();
  await sink.send(
    [1, 2, 1, 3].map((user, n) => ({ event: eventOf(user, n), destination: null })),
    signal,
  );
  await sink.close(signal);
  const config = writeConfig(folder, { erasure: { path: join(folder, 'erasure') } });
  expect((await millrace(['erase', userId(1), '--now', '--config', config])).code).toBe(0);
  const replayed = await millrace(['replay', old, '--to', 'archive', '--json', '--config', config]);
  expect([replayed.code, replayed.stderr]).toEqual([0, expect.anything() as string]);
  const last = replayed.stdout.trim().split('\n').at(-1) ?? '';
  expect(JSON.parse(last)).toMatchObject({ ok: true, erased: 2 });
  expect((await ids(join(folder, 'archive'))).sort()).toEqual(['msg_2_1', 'msg_3_3']);
  rmSync(old, { recursive: true });
  expect(find([folder], [userId(1), secretOf(1)])).toEqual([]);
});

test('a replay drops an event whose body names the erased user where its record names another', async () => {
  const folder = await temporaryFolder();
  const old = join(folder, 'old');
  const { sink } = filesSink(old);
  await sink.open();
  const records = [
    eventOf(2, 0, { body: eventOf(1, 0).body }),
    eventOf(2, 1, { user: null, clientUser: null, body: eventOf(1, 1).body, headers: {} }),
    eventOf(2, 2),
    eventOf(1, 3, { body: eventOf(2, 3).body }),
  ];
  await sink.send(
    records.map((event) => ({ event, destination: null })),
    signal,
  );
  await sink.close(signal);
  const config = writeConfig(folder, { erasure: { path: join(folder, 'erasure') } });
  const erase = (...who: string[]): ReturnType<typeof millrace> =>
    millrace(['erase', ...who, '--now', '--config', config]);
  expect((await erase(userId(1))).code).toBe(0);
  const replayed = await millrace(['replay', old, '--to', 'archive', '--json', '--config', config]);
  const last = replayed.stdout.trim().split('\n').at(-1) ?? '';
  expect(JSON.parse(last)).toMatchObject({ ok: true, erased: 3 });
  expect(await ids(join(folder, 'archive'))).toEqual(['msg_2_2']);
});

test('without a journal of its own a receiver clears its open files, and gives back what is on its way', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, {
    acknowledge: 'delivered' as unknown as object,
    admin: { port: 0 },
    erasure: { path: join(folder, 'erasure') },
  });
  const receiver = await Receiver.start(config);
  for (const user of [1, 2]) {
    const event = eventOf(user, 1);
    expect((await postSigned(receiver.url, event.body, { id: event.id })).status).toBe(202);
  }
  expect(find([join(folder, 'archive')], [secretOf(1)])).toHaveLength(1);
  const ask = async (path: string, body: object): Promise<{ status: number; json: unknown }> => {
    const init = {
      method: 'POST',
      headers: { ...receiver.authorization, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    const answer = await fetch(`${receiver.adminUrl}/api/erasures${path}`, init);
    return { status: answer.status, json: await answer.json() };
  };
  const asked = await ask('', { by: 'user', id: userId(1), team: null, now: true });
  expect(asked.status).toBe(200);
  const run = await ask('/run', {});
  expect(run.json).toMatchObject({ left: [], receipts: [{ records_removed: 1 }] });
  expect(find([folder], [userId(1), secretOf(1)])).toEqual([]);
  const again = eventOf(1, 2);
  const { json } = await postSigned(receiver.url, again.body, { id: again.id });
  expect(json).toEqual({ status: 'erased', id: again.id });
  // Without a journal, it is among the erasures that a command finds the way to a receiver on any port.
  const listed = await millrace(['erase', '--list', '--json', '--config', config]);
  expect(JSON.parse(listed.stdout)).toMatchObject({ waiting: [], erased: [{ by: 'user' }] });
  expect((await ask('', { by: 'somebody', id: 'x', team: null })).status).toBe(400);
  await receiver.kill('SIGTERM');
  await until('the file of the other user', () => find([folder], [secretOf(2)]).length === 1);
});
