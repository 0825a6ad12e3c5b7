import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ErasureRequest } from '../../src/core/erasure.ts';
import { ErasedUsers } from '../../src/privacy/erase/erased-users.ts';
import { eventOf, find, secretOf, userId } from '../privacy/erase/support.ts';
import { Place, saying } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const GONE = 7;
const STAYS = 8;
const GATED = join(import.meta.dirname, 'gated-sink.ts');

/** Events of three users: to the archive, some also to a sink that refuses them, some invalid. */
async function sendAll(receiver: Serving): Promise<void> {
  await receiver.send(
    Array.from({ length: 20 }, (_, n) => [GONE, STAYS, 9].map((user) => eventOf(user, n))).flat(),
  );
  for (const user of [GONE, STAYS]) {
    const invalid = Buffer.from(JSON.stringify({ user_id: userId(user), note: secretOf(user) }));
    const { json } = await receiver.post(invalid, { id: `msg_invalid_${user}` });
    expect(json).toMatchObject({ status: 'quarantined' });
  }
}

const refusing = (): Promise<Place> =>
  Place.make((folder) => ({
    erasure: { path: join(folder, 'erasure'), grace: '1h' },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      refuses: { type: GATED, refuses: true },
    },
  }));

const statusOf = async (receiver: Serving, user: number, n: number): Promise<unknown> => {
  const { id, body } = eventOf(user, n);
  return (await receiver.post(body, { id })).json['status'];
};

test('who was erased stays out after kill -9, until a person lifts it; nothing else does', async () => {
  const place = await Place.make();
  const receiver = await place.startProcess();
  await place.ok('erase', userId(GONE), '--now');
  expect(await statusOf(receiver, GONE, 1)).toBe('erased');
  expect(await statusOf(receiver, STAYS, 1)).toBe('accepted');
  await receiver.kill('SIGKILL');
  const restarted = await place.start();
  expect(await statusOf(restarted, GONE, 1)).toBe('erased');
  expect(await place.json('erase', '--cancel', userId(GONE))).toEqual({ code: 0, status: 'lifted' });
  expect(await statusOf(restarted, GONE, 1)).toBe('accepted');
});

test('a receiver performs by itself what is due, and continues with what a kill -9 interrupted', async () => {
  const place = await refusing();
  const receiver = await place.startProcess();
  await sendAll(receiver);
  await receiver.drained();
  await receiver.kill('SIGKILL');
  const { request } = await place.json('erase', userId(GONE));
  expect(await place.run('erase', '--run')).toMatchObject({ code: 0, stderr: 'nothing is due\n' });
  // As if an hour had gone by, and a run had been killed as it began.
  const file = place.at('erasure', 'requests', `${request}.json`);
  const due = { ...(JSON.parse(readFileSync(file, 'utf8')) as object), begun_at: '2026-11-21T00:00:00.000Z' };
  writeFileSync(file, JSON.stringify(due));
  expect(await place.run('erase', '--cancel', userId(GONE))).toMatchObject(
    saying(1, 'Erasure has already begun'),
  );
  const next = await place.start();
  // The run continues while this looks, and takes files away: only these are looked for.
  await until('the receipt', () => existsSync(place.at('erasure', 'receipts', `${request}.json`)));
  const progress = place.at('erasure', 'progress.jsonl');
  await until('the end of the run', () => !existsSync(file) && !existsSync(progress));
  // Files that it replaces must not go while they are listed.
  await next.stop();
  expect(find([place.folder], [userId(GONE), secretOf(GONE)])).toEqual([]);
});

test.each(['while a receiver runs', 'without a receiver'])(
  'an erasure ends with a receipt although an event type and a team are called after the user, %s',
  async (when) => {
    const [gone, stays, team, other] = [GONE, STAYS, 101, 102].map(userId) as [
      string,
      string,
      string,
      string,
    ];
    const place = await Place.make((folder) => ({
      sinks: { archive: { type: 'files', path: join(folder, 'archive'), partitionBy: ['type', 'team'] } },
    }));
    const receiver = await place.startProcess();
    const send = async (id: string, type: string, team_id: string, user_id: string): Promise<void> => {
      const event = { event_type: type, team_id, user_id, client_user_id: `made-up-${id}` };
      await receiver.send([{ id, body: Buffer.from(JSON.stringify(event)) }]);
    };
    await send('a', `made.up.${gone}`, team, stays);
    await send('b', 'made.up', gone, stays);
    await send('c', `made.up.alone.${gone}`, gone, gone);
    await receiver.drained();
    await place.ok('flush');
    // Of these the files are unfinished.
    await send('d', `made.up.${gone}`, team, stays);
    await send('e', `made.up.alone.${gone}`, other, gone);
    await receiver.drained();
    if (when === 'without a receiver') await receiver.kill('SIGKILL');

    const run = await place.run('erase', gone, '--now', '--json');
    const { receipts, left } = JSON.parse(run.stdout);
    expect([run.code, receipts]).toMatchObject([3, [{ records_removed: 4 }]]);
    expect(left.filter(({ requests }: { requests: string[] }) => requests.length > 0)).toEqual([]);
    expect(receipts[0].not_searched).toEqual(
      expect.arrayContaining([
        '_manifest.jsonl',
        expect.stringMatching(/^type=made\.up\.\*\/team=[^*/]+\/.*\.gz$/),
        expect.stringMatching(/^type=made\.up\/team=\*\/.*\.gz$/),
      ]),
    );
    expect(run.stdout + run.stderr).not.toContain(gone);
    expect(await place.run('erase', '--run')).toMatchObject({ code: 0, stderr: 'nothing is due\n' });
    // What held no one else is gone, and its folders with it.
    const names = readdirSync(place.at('archive'), { recursive: true, encoding: 'utf8' });
    expect(names.filter((name) => name.includes('alone'))).toEqual([]);
  },
);

/** A receiver with one sink of the test's own, and events of users 1 and 2 in turns. */
async function waiting(
  sink: object,
): Promise<{ place: Place; receiver: Serving; delivered: () => string[] }> {
  const place = await Place.make((folder) => ({
    sinks: { own: { type: GATED, folder, ...sink } },
    routes: [{ match: '*', to: ['own:right'] }],
  }));
  const receiver = await place.startProcess();
  await receiver.send(Array.from({ length: 20 }, (_, n) => eventOf((n % 2) + 1, Math.floor(n / 2))));
  const delivered = (): string[] =>
    existsSync(place.at('delivered'))
      ? readFileSync(place.at('delivered'), 'utf8').trim().split('\n').sort()
      : [];
  return { place, receiver, delivered };
}

const OTHERS = Array.from({ length: 10 }, (_, n) => `msg_2_${n}`);

test('a batch on its way is waited for; what follows it is not sent', async () => {
  const { place, receiver, delivered } = await waiting({});
  await until('a batch on its way', () => existsSync(place.at('begun')));
  const erased = place.json('erase', userId(1), '--now');
  let more = 100;
  await until(
    'a receiver that knows of it',
    async () => (await statusOf(receiver, 1, (more += 1))) === 'erased',
  );
  writeFileSync(place.at('gate'), '');
  expect(await erased).toMatchObject({ code: 0, left: [] });
  await receiver.drained();
  expect(delivered().filter((id) => id.startsWith('msg_2_'))).toEqual(OTHERS);
  // One batch holds ten events at most, and was in flight.
  expect(delivered().length).toBeLessThan(20);
  expect(find([place.folder], [userId(1), secretOf(1)])).toEqual([]);
});

test('after a kill -9 amid the run nothing of the user is sent before the run continues', async () => {
  const { place, receiver, delivered } = await waiting({ opens: 'with an error' });
  await receiver.kill('SIGKILL');
  await place.ok('erase', userId(1));
  const requests = place.at('erasure', 'requests');
  const [name = ''] = readdirSync(requests);
  // What a run leaves that is killed when it has blocked the user.
  const request = JSON.parse(readFileSync(join(requests, name), 'utf8')) as ErasureRequest;
  writeFileSync(join(requests, name), JSON.stringify({ ...request, begun_at: request.requested_at }));
  await ErasedUsers.open(place.at('erasure')).block(request, request.requested_at);
  place.edit(({ sinks }) => (sinks.own.opens = 'at once'));
  writeFileSync(place.at('gate'), '');
  await (await place.start()).drained();
  await until('the receipt', () => existsSync(place.at('erasure', 'receipts', name)));
  expect(delivered()).toEqual(OTHERS);
});
