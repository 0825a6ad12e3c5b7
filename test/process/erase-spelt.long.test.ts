import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SPELLINGS, standing } from '../erase/spellings.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
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
async function recentIds({ adminUrl, authorization }: ReceiverProcess): Promise<string[]> {
  const answer = await fetch(`${adminUrl}/api/console`, { headers: authorization });
  const { recent } = (await answer.json()) as { recent: { id: string }[] };
  return recent.map(({ id }) => id);
}

test('events that only name the user in some way are erased, answered as erased when they come again, and are nowhere', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await ReceiverProcess.start(config);
  for (const user of [1, 2]) expect(await sendAll(receiver.url, user, 1)).not.toContain('erased');
  await receiver.drained();
  expect(await recentIds(receiver)).toContain('spelt_1_1_0');

  const idsBy = (kind: string): string[] => [
    ...new Set(ALL.flatMap(([, { id, by }]) => (by === kind ? [id(1)] : []))),
  ];
  for (const args of [idsBy('user'), ['--client-user', ...idsBy('client_user')]]) {
    const run = await millrace(['erase', ...args, '--now', '--json', '--config', config]);
    expect([run.code, run.stderr]).toEqual([0, '']);
  }
  const mine = [SECRET_OF(1), ...idsBy('user'), ...idsBy('client_user'), 'spelt_1_1_'];
  expect(standing(folder, mine)).toEqual([]);
  expect(await recentIds(receiver)).toEqual([]);

  expect(await sendAll(receiver.url, 1, 2)).toEqual(ALL.map(() => 'erased'));
  expect(await sendAll(receiver.url, 2, 2)).not.toContain('erased');
  await receiver.drained();
  appendFileSync(join(folder, 'log'), receiver.stderr);
  expect(standing(folder, [...mine.slice(0, -1), SECRET_OF(2)])).toEqual([SECRET_OF(2)]);

  await receiver.kill('SIGKILL');
  const restarted = await Receiver.start(config);
  expect(await sendAll(restarted.url, 1, 3)).toEqual(ALL.map(() => 'erased'));
});
