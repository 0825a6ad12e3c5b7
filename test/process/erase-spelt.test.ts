import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SPELLINGS, standing } from '../erase/spellings.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

const ALL = Object.entries(SPELLINGS);
const SECRET_OF = (user: number): string => `made-up-secret-of-user-${user}-`;

/** Sends an event of no user for each way of writing its id. */
async function sendAll(url: string, user: number, run: number): Promise<string[]> {
  const statuses: string[] = [];
  for (const [index, [name, { id, write }]] of ALL.entries()) {
    const body = write(id(user), SECRET_OF(user));
    const { status, json } = await postSigned(url, body, { id: `spelt_${run}_${user}_${index}` });
    expect([name, status]).toEqual([name, 202]);
    statuses.push(String(json['status']));
  }
  return statuses;
}

/** Ids of the events that the console shows of late. */
async function recentIds(folder: string, adminUrl: string): Promise<string[]> {
  const owner = JSON.parse(readFileSync(join(folder, 'journal', 'owner.json'), 'utf8')) as { token?: string };
  const headers = owner.token === undefined ? {} : { authorization: `Bearer ${owner.token}` };
  const answer = await fetch(`${adminUrl}/api/console`, { headers });
  const { recent } = (await answer.json()) as { recent: { id: string }[] };
  return recent.map(({ id }) => id);
}

test('events that only name the user in some way are erased, answered as erased when they come again, and are nowhere', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await ReceiverProcess.start(config);
  for (const user of [1, 2]) expect(await sendAll(receiver.url, user, 1)).not.toContain('erased');
  await receiver.drained();
  expect(await recentIds(folder, receiver.adminUrl)).toContain('spelt_1_1_0');

  const subjects = new Map(ALL.map(([, { id, by }]) => [id(1), by]));
  for (const [id, by] of subjects) {
    const kind = by === 'user' ? [] : ['--client-user'];
    const run = await millrace(['erase', id, ...kind, '--now', '--json', '--config', config]);
    expect([run.code, run.stderr]).toEqual([0, '']);
  }
  const mine = [SECRET_OF(1), ...subjects.keys(), 'spelt_1_1_'];
  expect(standing(folder, mine)).toEqual([]);
  expect(await recentIds(folder, receiver.adminUrl)).toEqual([]);

  expect(await sendAll(receiver.url, 1, 2)).toEqual(ALL.map(() => 'erased'));
  expect(await sendAll(receiver.url, 2, 2)).not.toContain('erased');
  await receiver.drained();
  appendFileSync(join(folder, 'log'), receiver.stderr);
  expect(standing(folder, [...mine.slice(0, -1), SECRET_OF(2)])).toEqual([SECRET_OF(2)]);

  await receiver.kill('SIGKILL');
  const restarted = await ReceiverProcess.start(config);
  expect(await sendAll(restarted.url, 1, 3)).toEqual(ALL.map(() => 'erased'));
});
