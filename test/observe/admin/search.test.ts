import { expect, test } from 'vitest';
import { madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../../sinks/http-support.ts';
import { Place } from '../../support/place.ts';
import type { Serving } from '../../support/serving.ts';
import { until } from '../../support/until.ts';

const SECRET = `whsec_${Buffer.from('between us and targets').toString('base64')}`;

interface Page {
  readonly events: { readonly key: number; readonly id: string; readonly state: string }[];
  readonly searched: number;
  readonly of: number;
  readonly next: number | null;
}

test('events are found by what is known of them, and their timeline is shown, over a kill and an erasure', async () => {
  const services = await startEndpoint();
  const place = await Place.make((folder) => ({
    shutdown: { deadline: '1s' },
    delivery: { retryInitial: '20ms', retryMax: '40ms' },
    sinks: {
      archive: { type: 'files', path: `${folder}/archive` },
      services: { type: 'http', url: services.url('/'), secrets: [SECRET], privateNetworks: ['127.0.0.1'] },
    },
    routes: [
      { match: 'labtest.', to: ['services', 'archive'] },
      { match: 'daily.', to: ['archive'] },
      { match: 'lab_report.', to: [] },
    ],
  }));
  let receiver: Serving = await place.startProcess();
  const ask = (path: string, body?: object) => receiver.call(`/api/search${path}`, body);
  /** Until the index has all, and one answer has had the time to look at it. */
  const find = (query: object): Promise<Page> =>
    until('a whole answer', async () => {
      const answer: Page = (await ask('', query)).answer;
      const isWhole = answer.searched === answer.of && (answer.events.length > 0 || answer.next === null);
      return isWhole ? answer : null;
    });
  const idsOf = async (query: object): Promise<string[]> => (await find(query)).events.map(({ id }) => id);
  const sent: Record<string, { id: string; user: string }> = {};
  let tries = 0;
  services.reply = (_path, body) => (body.includes('refuse me') ? 422 : tries++ === 0 ? 503 : 204);
  const post = async (name: string, n: number, type: string, more = {}): Promise<void> => {
    const event = { ...(JSON.parse(madeUpEvent(n, type).body.toString()) as { user_id: string }), ...more };
    sent[name] = { id: `msg_${name}`, user: event.user_id };
    await receiver.send([{ id: `msg_${name}`, body: Buffer.from(JSON.stringify(event)) }]);
  };
  await post('meal', 1, 'daily.data.meal.created');
  await post('order', 2, 'labtest.order.updated');
  await receiver.drained();
  await post('refused', 3, 'labtest.order.updated', { note: 'refuse me' });
  await post('nowhere', 4, 'lab_report.parsing_job.created');
  await post('invalid', 5, 'daily.data.meal.created', { team_id: null });
  await receiver.drained();
  services.reply = () => 'hang';
  await post('waits', 6, 'labtest.order.updated');
  await until('the request that hangs', () => services.open === 1);

  expect(await idsOf({})).toEqual(['msg_waits', 'msg_nowhere', 'msg_refused', 'msg_order', 'msg_meal']);
  expect(await idsOf({ id: 'msg_order' })).toEqual(['msg_order']);
  expect(await idsOf({ user: sent['meal']?.user })).toContain('msg_meal');
  expect(await idsOf({ type: 'labtest.', limit: 2 })).toEqual(['msg_waits', 'msg_refused']);
  const { next } = await find({ type: 'labtest.', limit: 2 });
  expect(await idsOf({ type: 'labtest.', limit: 2, before: next })).toEqual(['msg_order']);
  expect(await idsOf({ until: '2020-01-01T00:00:00Z' })).toEqual([]);
  expect(await idsOf({ state: 'waiting' })).toEqual(['msg_waits']);
  expect(await idsOf({ state: 'nowhere' })).toEqual(['msg_nowhere']);
  expect(await idsOf({ state: 'settled' })).toEqual(['msg_refused', 'msg_order', 'msg_meal']);
  expect(await idsOf({ state: 'dead' })).toEqual(['msg_refused']);
  expect(await idsOf({ state: 'quarantined', id: 'msg_invalid' })).toEqual(['msg_invalid']);

  const way = async (name: string): Promise<unknown> => {
    const [event] = (await find({ id: `msg_${name}` })).events;
    return (await ask(`/${event?.key}`)).answer;
  };
  const iso = expect.stringMatching(/^2\d{3}-.*Z$/) as string;
  expect(await way('order')).toMatchObject({
    event: { id: 'msg_order', source: 'webhooks' },
    journaled_at: iso,
    route: { index: 0, match: 'labtest.' },
    sinks: [
      {
        sink: 'services',
        state: 'delivered',
        at: iso,
        retries: [{ at: iso, reason: expect.stringContaining('503') as string }],
      },
      { sink: 'archive', state: 'delivered', at: iso, retries: [] },
    ],
  });
  expect(await way('refused')).toMatchObject({
    sinks: [
      { state: 'dead', at: iso, reason: expect.stringContaining('422') as string },
      { state: 'delivered' },
    ],
  });
  expect(await way('nowhere')).toMatchObject({ route: { index: 2 }, sinks: [] });
  expect(await way('waits')).toMatchObject({
    sinks: [{ state: 'waiting', at: null }, { state: 'delivered' }],
  });

  // What went nowhere under the routes of then stays so, whatever its type does now.
  place.edit(({ routes }) => routes.unshift({ match: '*', to: ['archive'] }));
  expect((await ask('/../reload', {})).status).toBe(200);
  await post('later', 7, 'lab_report.parsing_job.created');
  await post('last', 8, 'daily.data.meal.created');
  await until('the last event', async () => (await idsOf({ id: 'msg_last', state: 'settled' })).length === 1);
  expect(await idsOf({ state: 'nowhere' })).toEqual(['msg_nowhere']);
  expect(await idsOf({ state: 'waiting', limit: 1 })).toEqual(['msg_waits']);
  expect(await idsOf({ state: 'settled', type: 'lab_report.' })).toEqual(['msg_later']);

  await receiver.kill('SIGKILL');
  services.reply = () => 204;
  receiver = await place.start();
  // What is not remembered is not claimed.
  expect(await way('meal')).toMatchObject({ journaled_at: iso, sinks: [{ state: 'passed', at: null }] });
  await place.ok('erase', sent['meal']?.user ?? '', '--now');
  expect(await idsOf({ id: 'msg_meal' })).toEqual([]);

  expect((await ask('/999999')).status).toBe(404);
  for (const wrong of [
    { since: 'yesterday' },
    { limit: 0 },
    { limit: 1e9 },
    { ids: 'x' },
    { state: 'lost' },
    { id: 7 },
  ])
    expect([wrong, (await ask('', wrong)).status]).toEqual([wrong, 400]);
  expect((await fetch(`${receiver.adminUrl}/api/search`, { method: 'POST', body: '{}' })).status).toBe(401);
  await receiver.stop();
});
