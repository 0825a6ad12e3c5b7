import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/start.ts';
import { ServiceClient } from '../../src/history/service/client.ts';
import { mealsOf } from '../history/service/support.ts';
import { Place } from '../support/place.ts';
import { jsonLines } from '../support/json-lines.ts';

/** A service with made-up users, a sink that follows what it announces, and what makes those announcements. */
async function service(made: { users: number; days: number; mealsPerDay: number }) {
  const sandbox = await startSandbox({ host: '127.0.0.1', seed: 'made-up', ...made });
  onTestFinished(() => sandbox.stop());
  const { url: baseUrl, apiKey, teamId } = sandbox;
  const user = sandbox.state.users.list(teamId)[0]!;
  const ids = { team_id: teamId, user_id: user.id };
  const completion = (names: object, start: string, end: string, more: object = {}): Buffer => {
    const data = { user_id: user.id, start_date: start, end_date: end, ...more, is_final: true };
    return Buffer.from(JSON.stringify({ ...names, ...ids, data }));
  };
  return { sandbox, user, ids, completion, sink: { type: 'follow-up', baseUrl, apiKey } };
}

test('a completion becomes exactly that pull, once however often it is repeated, also after a restart', async () => {
  const { user, completion, sink } = await service({ users: 2, days: 10, mealsPerDay: 2 });
  const place = await Place.make((folder) => ({
    sinks: { history: { ...sink, path: join(folder, 'history') } },
  }));
  const provider = user.sources[0];
  const completed = (type: string): Buffer =>
    completion({ event_type: type, client_user_id: 'made-up' }, '2026-01-02', '2026-01-03', { provider });
  const meals = completed('historical.data.meal.created');
  const first = await place.startProcess();
  await Promise.all(['a', 'b', 'c'].map((id) => first.post(meals, { id: `msg_${id}` })));
  await first.send([
    { id: 'msg_mood', body: completed('historical.data.mood.created') },
    { id: 'msg_odd', body: Buffer.from(meals.toString().replace('start_date', 'began')) },
  ]);
  await first.drained();
  const { journal, sinks } = await first.status();
  expect(journal.deadLetters).toBe(1);
  const skipped = { 'historical.data.mood.created': 1 };
  expect(sinks).toMatchObject([{ sink: 'history', mode: 'running', troubles: [], skipped }]);
  expect(await place.ok('status')).toMatch(
    /^history: confirmed without an action: 1 historical\.data\.mood\.created$/m,
  );
  expect(await first.metrics()).toContain(
    'millrace_sink_skipped_total{sink="history",what="historical.data.mood.created"} 1\n',
  );
  await first.kill('SIGKILL');
  const second = await place.start();
  await second.send([{ id: 'msg_d', body: meals }]);
  await second.drained();
  await second.stop();

  const pulls = readdirSync(place.at('history'));
  expect(pulls).toHaveLength(1);
  const rows = jsonLines<{ timestamp: string }>(readFileSync(place.at('history', pulls[0]!, 'meals.ndjson')));
  const days = rows.map(({ timestamp }) => timestamp.slice(0, 10));
  expect(new Set(days)).toEqual(new Set(['2026-01-02', '2026-01-03']));
});

test('with events the meals go through the routes as well, each once over repetitions, a cut, a kill and ranges that overlap', async () => {
  // Enough for a document of several chunks, which a cut can leave half read.
  const { sandbox, user, ids, completion, sink } = await service({ users: 1, days: 60, mealsPerDay: 8 });
  const place = await Place.make((folder) => ({
    // Other names than the service's, to see that the events follow the config.
    envelope: { type: 'kind', clientUser: 'reference' },
    delivery: { retryInitial: '100ms' },
    sinks: {
      history: { ...sink, path: join(folder, 'history'), events: true },
      archive: { type: 'files', path: join(folder, 'archive') },
    },
    routes: [
      { match: 'historical.', to: 'history' },
      { match: 'daily.data.meal.', to: 'archive' },
    ],
  }));
  const completed = (id: string, start: string, end: string) => {
    const names = { kind: 'historical.data.meal.created', reference: 'made-up' };
    return { id, body: completion(names, start, end) };
  };
  const first = await place.startProcess();
  sandbox.state.faults.next({ kind: 'drop-after' });
  await first.send(['msg_a', 'msg_b'].map((id) => completed(id, '2026-01-01', '2026-02-10')));
  await first.drained();
  await first.kill('SIGKILL');
  const second = await place.start();
  await second.send([
    completed('msg_c', '2026-01-01', '2026-02-10'),
    completed('msg_d', '2026-02-01', '2026-02-20'),
  ]);
  await second.drained();
  await second.stop();

  const client = new ServiceClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey });
  onTestFinished(() => client.close());
  const meals = await mealsOf(client, user.id, { start: '2026-01-01', end: '2026-02-20' });
  const found = [...(await place.archived()).values()];
  expect(found.every((copies) => copies.length === 1)).toBe(true);
  const events = found.map(([copy]) => copy!);
  expect(new Set(events.map(({ record }) => `${record.source} ${record.event_type}`))).toEqual(
    new Set(['follow-up daily.data.meal.created']),
  );
  const kind = 'daily.data.meal.created';
  expect(events.map(({ body }) => body.toString()).toSorted()).toEqual(
    meals.map((data) => JSON.stringify({ kind, data, ...ids, reference: 'made-up' })).toSorted(),
  );
});
