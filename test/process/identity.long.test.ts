import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { Place } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { SECRET } from '../support/signed-events.ts';

const OTHER_SECRET = `whsec_${Buffer.from('another made-up secret of tests').toString('base64')}`;
const bodies = [1, 2, 3, 4].map((n) => madeUpEvent(n).body) as [Buffer, Buffer, Buffer, Buffer];

test('an id that comes again with other bytes is kept and named, never a duplicate', async () => {
  const place = await Place.make({ signing: { secrets: [SECRET, OTHER_SECRET] } });
  let receiver: Serving = await place.startProcess();
  const post = async (id: string, body: Buffer, secret = SECRET): Promise<unknown[]> => {
    const { status, json } = await receiver.post(body, { id, secret });
    return [status, json['code'] ?? json['status']];
  };
  const [genuine, burnt, third, fourth] = bodies;
  // Somebody with a second secret uses the id first; the genuine event is not lost to it.
  expect(await post('msg_a', burnt, OTHER_SECRET)).toEqual([202, 'accepted']);
  expect(await post('msg_a', genuine)).toEqual([202, 'id_reused']);
  // Each comes again, as a sender does that has missed the answer.
  expect(await post('msg_a', genuine)).toEqual([200, 'duplicate']);
  expect(await post('msg_a', burnt)).toEqual([200, 'duplicate']);
  expect(await post('msg_a', third)).toEqual([202, 'id_reused']);
  // A valid event after an invalid one of its id.
  expect((await receiver.post(Buffer.from('{}'), { id: 'msg_b' })).json).toMatchObject({
    status: 'quarantined',
  });
  expect(await post('msg_b', genuine)).toEqual([202, 'id_reused']);
  // The same after a restart.
  await receiver.kill('SIGKILL');
  receiver = await place.start();
  expect(await post('msg_a', genuine)).toEqual([200, 'duplicate']);
  expect(await post('msg_a', fourth)).toEqual([202, 'id_reused']);

  const kept: unknown[] = [];
  for (const { key, id, reasons } of await place.documents('quarantine', 'list')) {
    if (reasons[0].code !== 'id_reused') continue;
    const { body_base64: body } = await place.json('quarantine', 'show', String(key));
    kept.push([id, Buffer.from(body as string, 'base64')]);
  }
  expect(kept).toEqual([
    ['msg_a', genuine],
    ['msg_a', third],
    ['msg_b', genuine],
    ['msg_a', fourth],
  ]);
  expect(await receiver.metrics()).toMatch(/millrace_quarantined_total\{code="id_reused"\} 1\b/);
  // Which of two events of one id is the right one, a person has to say: by its key, and not with all.
  expect(await place.ok('quarantine', 'retry', '--all')).toMatch(
    /^retried 0, kept 5 \(.*id_reused, which has to be named by its key\)/,
  );
  expect(await place.ok('quarantine', 'retry', '1')).toContain('retried 1');
  await receiver.drained();
  await receiver.stop();
  const copies = (await place.archived()).get('msg_a') ?? [];
  expect(copies.map(({ body }) => body.toString())).toEqual([burnt.toString(), genuine.toString()]);
  await place.ok('reconcile');
});
