import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { eventOf, find, secretOf, userId } from '../privacy/erase/support.ts';
import { filesSink, ids, signal } from '../sinks/support.ts';
import { Place } from '../support/place.ts';
import { until } from '../support/until.ts';

/** Erases user 1, and replays an archive of these events that another machine still has. */
async function replayedAfter(
  events: readonly ReturnType<typeof eventOf>[],
): Promise<{ place: Place; report: unknown; left: string[] }> {
  const place = await Place.make();
  const { sink } = filesSink(place.at('old'));
  await sink.open();
  await sink.send(
    events.map((event) => ({ event, destination: null })),
    signal,
  );
  await sink.close(signal);
  await place.ok('erase', userId(1), '--now');
  const report: unknown = await place.json('replay', place.at('old'), '--to', 'archive');
  rmSync(place.at('old'), { recursive: true });
  return { place, report, left: (await ids(place.at('archive'))).sort() };
}

test('a replay of an archive that another machine still has leaves the erased user out, and says so', async () => {
  const { place, report, left } = await replayedAfter([1, 2, 1, 3].map((user, n) => eventOf(user, n)));
  expect(report).toMatchObject({ code: 0, ok: true, erased: 2 });
  expect(left).toEqual(['msg_2_1', 'msg_3_3']);
  expect(find([place.folder], [userId(1), secretOf(1)])).toEqual([]);
});

test('a replay drops an event whose body names the erased user where its record names another', async () => {
  const { report, left } = await replayedAfter([
    eventOf(2, 0, { body: eventOf(1, 0).body }),
    eventOf(2, 1, { user: null, clientUser: null, body: eventOf(1, 1).body, headers: {} }),
    eventOf(2, 2),
    eventOf(1, 3, { body: eventOf(2, 3).body }),
  ]);
  expect(report).toMatchObject({ code: 0, ok: true, erased: 3 });
  expect(left).toEqual(['msg_2_2']);
});

test('without a journal of its own a receiver clears its open files, and gives back what is on its way', async () => {
  const place = await Place.make({ acknowledge: 'delivered' });
  const receiver = await place.start();
  await receiver.send([eventOf(1, 1), eventOf(2, 1)]);
  expect(find([place.at('archive')], [secretOf(1)])).toHaveLength(1);
  const ask = async (path: string, body: object): Promise<{ status: number; json: unknown }> => {
    const answer = await fetch(`${receiver.adminUrl}/api/erasures${path}`, {
      method: 'POST',
      headers: { ...receiver.authorization, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: answer.status, json: await answer.json() };
  };
  expect(await ask('', { by: 'user', id: userId(1), team: null, now: true })).toMatchObject({ status: 200 });
  expect((await ask('/run', {})).json).toMatchObject({ left: [], receipts: [{ records_removed: 1 }] });
  expect(find([place.folder], [userId(1), secretOf(1)])).toEqual([]);
  const again = eventOf(1, 2);
  const { json } = await receiver.post(again.body, { id: again.id });
  expect(json).toEqual({ status: 'erased', id: again.id });
  // Without a journal, it is among the erasures that a command finds the way to a receiver on any port.
  expect(await place.json('erase', '--list')).toMatchObject({ waiting: [], erased: [{ by: 'user' }] });
  expect((await ask('', { by: 'somebody', id: 'x', team: null })).status).toBe(400);
  await receiver.stop();
  await until('the file of the other user', () => find([place.folder], [secretOf(2)]).length === 1);
});
