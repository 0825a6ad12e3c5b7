import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../../sinks/http-support.ts';
import { Place } from '../../support/place.ts';
import { until } from '../../support/until.ts';

const SECRET = `whsec_${Buffer.from('between us and targets').toString('base64')}`;

interface Job {
  readonly id: string;
  readonly state: string;
  readonly detail: string | null;
  readonly preview: { readonly selected: number; readonly types: object; readonly targets: object } | null;
  readonly result: { readonly selected: number } | null;
}

test('a replay is counted, sent once it is confirmed, stopped, and continues after its receiver was killed', async () => {
  const target = await startEndpoint();
  target.reply = () => 204;
  const place = await Place.make((folder) => ({
    shutdown: { deadline: '1s' },
    sinks: {
      archive: { type: 'files', path: `${folder}/archive` },
      target: { type: 'http', url: target.url('/'), secrets: [SECRET], privateNetworks: ['127.0.0.1'] },
      out: { type: 'stdout' },
    },
    routes: [{ match: '*', to: ['archive'] }],
  }));
  let receiver = await place.startProcess();
  /** Of all replays, but for what is remembered of those that are done. */
  const left = (): string[] =>
    readdirSync(place.at('replay')).filter((name) => !name.endsWith('.finished.json'));
  const ask = (path: string, body?: object) => receiver.call(`/api/replays${path}`, body);
  const jobs = async (): Promise<readonly Job[]> => (await ask('')).answer.jobs;
  const untilState = (id: string, state: string): Promise<Job> =>
    until(`${id} to be ${state}`, async () => {
      return (await jobs()).find((job) => job.id === id && job.state === state) ?? null;
    });
  const counted = async (order: object): Promise<Job> => {
    const { status, answer } = await ask('', order);
    expect(status).toBe(200);
    return untilState(answer.id, 'counted');
  };

  for (const n of [1, 2, 3, 4, 5]) {
    const { body } = madeUpEvent(n, n > 3 ? 'labtest.order.updated' : 'daily.data.meal.created');
    await receiver.send([{ id: `msg_${n}`, body }]);
  }
  await receiver.drained();
  expect((await ask('')).answer).toEqual({
    jobs: [],
    from: ['journal', 'archive'],
    to: ['archive', 'target'],
  });
  const order = { from: 'journal', to: 'target', types: ['labtest.'] };
  const { id, preview } = await counted(order);
  expect(preview).toMatchObject({
    selected: 2,
    types: { 'labtest.order.updated': 2 },
    targets: { target: 2 },
  });
  const all = await counted({ from: 'archive', to: null });
  expect(all.preview).toMatchObject({ selected: 5, targets: { archive: 5 } });
  // What looks like a flag is a type; and no request names a place on disk.
  expect((await counted({ ...order, types: ['--to=archive'] })).preview?.selected).toBe(0);
  for (const wrong of [
    { from: '/etc', to: 'target' },
    { from: 'target', to: 'archive' },
    { from: 'journal', to: 'out' },
    { from: 'journal', to: 'nowhere' },
    { from: 'journal', to: 'target', since: 'yesterday' },
    { from: 'journal', to: 'target', users: ['x'] },
    {},
  ])
    expect([wrong, (await ask('', wrong)).status]).toEqual([wrong, 400]);
  expect((await ask('/console-nowhere/start', {})).status).toBe(400);
  expect(target.ids()).toEqual([]);

  target.reply = () => 'hang';
  expect((await ask(`/${id}/start`, {})).status).toBe(200);
  expect((await ask(`/${id}/start`, {})).status).toBe(400);
  await until('the first request', () => target.open > 0);
  expect((await ask(`/${id}/forget`, {})).status).toBe(400);
  await ask(`/${id}/stop`, {});
  await untilState(id, 'interrupted');

  // Its receiver is killed, and it lives on: the next one does not send beside it.
  expect((await ask(`/${id}/start`, {})).status).toBe(200);
  await until('the request again', () => target.open > 0);
  await receiver.kill('SIGKILL');
  receiver = await place.startProcess();
  expect((await jobs()).map((job) => [job.id, job.state])).toEqual([[id, 'interrupted']]);
  await ask(`/${id}/start`, {});
  expect((await untilState(id, 'failed')).detail).toMatch(/in use|another|process/);
  target.reply = () => 204;
  await target.stop();
  await target.start();
  const state = place.at('replay', id);
  await until('the one that lives on', () => !existsSync(state));
  await ask(`/${id}/start`, {});
  await untilState(id, 'done');
  expect(new Set(target.ids())).toEqual(new Set(['msg_4', 'msg_5']));
  expect(left()).toEqual([]);

  // What a sink refuses is named, and the rest is done.
  target.reply = () => 422;
  const refused = await counted(order);
  await ask(`/${refused.id}/start`, {});
  expect((await untilState(refused.id, 'done')).detail).toMatch(
    /^done, except for 2 refused .*refused\.ndjson/,
  );
  expect((await ask(`/${refused.id}/forget`, {})).status).toBe(200);

  // SIGTERM ends what runs, in order.
  target.reply = () => 'hang';
  const second = await counted(order);
  await ask(`/${second.id}/start`, {});
  await until('its request', () => target.open > 0);
  await receiver.stop();
  receiver = await place.startProcess();
  expect((await jobs()).map((job) => job.state)).toEqual(['interrupted']);
  expect((await ask(`/${second.id}/forget`, {})).status).toBe(200);
  expect(left()).toEqual([]);
  const audit = readFileSync(place.at('journal/audit.jsonl'), 'utf8');
  expect(audit).toContain(`"action":"replay","what":"replays","ids":["${id}","journal to target"]`);
});
