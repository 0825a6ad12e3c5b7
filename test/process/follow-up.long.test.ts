import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import { ServiceClient } from '../../src/service/client.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { mealsOf } from '../service/support.ts';
import { postSigned } from '../support/signed-events.ts';

test('a completion becomes exactly that pull, once however often it is repeated, also after a restart', async () => {
  const service = await startSandbox({
    host: '127.0.0.1',
    seed: 'made-up',
    users: 2,
    days: 10,
    mealsPerDay: 2,
  });
  onTestFinished(() => service.stop());
  const [user] = service.state.users.list(service.teamId);
  const folder = await temporaryFolder();
  const history = join(folder, 'history');
  const config = writeConfig(folder, {
    sinks: { history: { type: 'follow-up', path: history, baseUrl: service.url, apiKey: service.apiKey } },
  });
  const completion = (type: string, start: string): Buffer =>
    Buffer.from(
      JSON.stringify({
        event_type: type,
        team_id: service.teamId,
        user_id: user!.id,
        client_user_id: 'made-up',
        data: {
          user_id: user!.id,
          start_date: start,
          end_date: '2026-01-03',
          provider: user!.sources[0],
          is_final: true,
        },
      }),
    );
  const meals = completion('historical.data.meal.created', '2026-01-02');
  const first = await ReceiverProcess.start(config);
  await Promise.all(['a', 'b', 'c'].map((id) => postSigned(first.url, meals, { id: `msg_${id}` })));
  await postSigned(first.url, completion('historical.data.sleep.created', '2026-01-02'), { id: 'msg_sleep' });
  await postSigned(first.url, Buffer.from(meals.toString().replace('start_date', 'began')), {
    id: 'msg_odd',
  });
  await first.drained();
  const { journal, sinks } = await first.status();
  expect(journal.deadLetters).toBe(1);
  const skipped = { 'historical.data.sleep.created': 1 };
  expect(sinks).toMatchObject([{ sink: 'history', mode: 'running', troubles: [], skipped }]);
  const status = await millrace(['status', '--config', config]);
  expect(status.stdout).toMatch(
    /^history: confirmed, but nothing could be done with: 1 historical\.data\.sleep\.created$/m,
  );
  const metrics = await (await fetch(`${first.adminUrl}/metrics`)).text();
  expect(metrics).toContain(
    'millrace_sink_skipped_total{sink="history",what="historical.data.sleep.created"} 1\n',
  );
  await first.kill('SIGKILL');
  const second = await Receiver.start(config);
  await postSigned(second.url, meals, { id: 'msg_d' });
  await second.drained();
  await second.kill('SIGTERM');

  const pulls = readdirSync(history);
  expect(pulls).toHaveLength(1);
  const rows = readFileSync(join(history, pulls[0]!, 'meals.ndjson'), 'utf8')
    .trim()
    .split('\n');
  const days = rows.map((row) => (JSON.parse(row) as { timestamp: string }).timestamp.slice(0, 10));
  expect(new Set(days)).toEqual(new Set(['2026-01-02', '2026-01-03']));
});

test('with events the meals go through the routes as well, each once over repetitions, a cut, a kill and ranges that overlap', async () => {
  const service = await startSandbox({
    host: '127.0.0.1',
    seed: 'made-up',
    users: 1,
    days: 60,
    // Enough for a document of several chunks, which a cut can leave half read.
    mealsPerDay: 8,
  });
  onTestFinished(() => service.stop());
  const [user] = service.state.users.list(service.teamId);
  const folder = await temporaryFolder();
  const [history, archive] = [join(folder, 'history'), join(folder, 'archive')];
  const config = writeConfig(folder, {
    // Other names than the service's, to see that the events follow the config.
    envelope: { type: 'kind', clientUser: 'reference' },
    delivery: { retryInitial: '100ms' },
    sinks: {
      history: {
        type: 'follow-up',
        path: history,
        baseUrl: service.url,
        apiKey: service.apiKey,
        events: true,
      },
      archive: { type: 'files', path: archive },
    },
    routes: [
      { match: 'historical.', to: 'history' },
      { match: 'daily.data.meal.', to: 'archive' },
    ],
  });
  const completion = (start: string, end: string): Buffer =>
    Buffer.from(
      JSON.stringify({
        kind: 'historical.data.meal.created',
        team_id: service.teamId,
        user_id: user!.id,
        reference: 'made-up',
        data: { user_id: user!.id, start_date: start, end_date: end, is_final: true },
      }),
    );
  const first = await ReceiverProcess.start(config);
  service.state.faults.next({ kind: 'drop-after' });
  for (const id of ['msg_a', 'msg_b'])
    await postSigned(first.url, completion('2026-01-01', '2026-02-10'), { id });
  await first.drained();
  await first.kill('SIGKILL');
  const second = await Receiver.start(config);
  await postSigned(second.url, completion('2026-01-01', '2026-02-10'), { id: 'msg_c' });
  await postSigned(second.url, completion('2026-02-01', '2026-02-20'), { id: 'msg_d' });
  await second.drained();
  await second.kill('SIGTERM');

  const { meals } = await madeUpDocument(service, user!.id, '2026-01-01', '2026-02-20');
  const found = [...(await readBack(archive)).values()];
  expect(found.every((copies) => copies.length === 1)).toBe(true);
  const events = found.map(([copy]) => copy!);
  expect(new Set(events.map(({ record }) => `${record.source} ${record.event_type}`))).toEqual(
    new Set(['follow-up daily.data.meal.created']),
  );
  const envelope = { kind: 'daily.data.meal.created', team_id: service.teamId, user_id: user!.id };
  const bodies = events.map(({ body }) => body.toString()).toSorted();
  expect(bodies.length).toBe(meals.length);
  expect(bodies).toEqual(
    meals.map((data) => JSON.stringify({ ...kindAndData(envelope, data), reference: 'made-up' })).toSorted(),
  );
});

function kindAndData({ kind, ...ids }: { kind: string }, data: unknown): object {
  return { kind, data, ...ids };
}

/** What the service answers for the range, parsed. */
async function madeUpDocument(
  service: Sandbox,
  user: string,
  start: string,
  end: string,
): Promise<{ readonly meals: readonly unknown[] }> {
  const client = new ServiceClient({ baseUrl: service.url, apiKey: service.apiKey });
  try {
    return { meals: await mealsOf(client, user, { start, end }) };
  } finally {
    await client.close();
  }
}
