import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import type { Inlet, SendResult, Sink } from '../../src/core/sink.ts';
import type { IncomingMessage } from '../../src/core/incoming.ts';
import { MADE_UP_TEAM } from '../../src/sandbox/made-up-events.ts';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import type { User } from '../../src/sandbox/users.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { keyOf, readAnnouncement, type Completion } from '../../src/sinks/follow-up/announcement.ts';
import { createSink, parseOptions } from '../../src/sinks/follow-up/sink.ts';
import { DEFAULT_FIELDS } from '../../src/validate/envelope.ts';
import { until } from '../support/until.ts';
import { makeContext, signal, tempFolder } from './support.ts';

interface Parts {
  readonly follow: (inlet: Inlet | undefined) => Promise<SendResult>;
  /** Whether the pull counts as done. */
  readonly isDone: () => boolean;
}

async function openParts(): Promise<Parts> {
  const service = await startSandbox({ host: '127.0.0.1', users: 1, days: 4, mealsPerDay: 3 });
  onTestFinished(() => service.stop());
  const user = service.state.users.list(service.teamId)[0]?.id ?? '';
  const path = tempFolder();
  const data = { user_id: user, start_date: '2026-01-01', end_date: '2026-01-03' };
  const type = 'historical.data.meal.created';
  const body = Buffer.from(JSON.stringify({ event_type: type, data }));
  const completion = contractEvent(1, { type, user, body });
  const key = keyOf(readAnnouncement(completion) as Completion);
  return {
    isDone: () => existsSync(join(path, key, 'done.json')),
    follow: async (inlet) => {
      const options = parseOptions({ path, baseUrl: service.url, apiKey: service.apiKey, events: true });
      const sink = createSink(options, { ...makeContext(), ...(inlet === undefined ? {} : { inlet }) });
      onTestFinished(() => sink.close(signal));
      await sink.open(signal);
      const [result] = await sink.send([{ event: completion, destination: null }], signal);
      return result!;
    },
  };
}

function inletThat(take: Inlet['take']): Inlet {
  return { fields: () => DEFAULT_FIELDS, take };
}

test('a pull does not count as done before its events are in the journal', async () => {
  const { follow, isDone } = await openParts();
  const refused: IncomingMessage[] = [];
  const full = inletThat((_source, batch) => {
    refused.push(...batch);
    return Promise.reject(new MillraceError('journal_full', 'made up'));
  });
  expect(await follow(full)).toMatchObject({ status: 'retry' });
  expect(isDone()).toBe(false);

  const taken: IncomingMessage[] = [];
  const doneBefore: boolean[] = [];
  const open = inletThat((_source, batch) => {
    taken.push(...batch);
    doneBefore.push(isDone());
    return Promise.resolve();
  });
  expect(await follow(open)).toEqual({ status: 'delivered' });
  expect(isDone()).toBe(true);
  expect(new Set(doneBefore)).toEqual(new Set([false]));
  const ids = taken.map(({ properties }) => properties['idempotency-key']);
  expect(new Set(ids).size).toBe(9);
  expect(ids).toEqual(expect.arrayContaining(refused.map(({ properties }) => properties['idempotency-key'])));
});

test('events need a journal to go into', async () => {
  const { follow } = await openParts();
  await expect(follow(undefined)).rejects.toMatchObject({
    code: 'config_invalid',
    detail: 'sinks.archive.events: needs a receiver with a journal',
  });
});

/** A sink on a sandbox's parsing jobs and meals, and the events that announce them. */
async function openFollowing(): Promise<{
  readonly bench: Sandbox;
  readonly path: string;
  /** Types that the log names. */
  readonly named: () => unknown[];
  readonly sink: Sink;
  readonly announce: (type: string, data: object) => Promise<SendResult>;
  readonly user: User;
}> {
  const bench = await startSandbox({ users: 1, days: 4, mealsPerDay: 3, speed: 1e6 });
  onTestFinished(() => bench.stop());
  const user = bench.state.users.list(bench.teamId)[0]!;
  const path = tempFolder();
  const context = makeContext();
  const options = parseOptions({ path, baseUrl: bench.url, apiKey: bench.apiKey });
  const sink = createSink(options, context);
  onTestFinished(() => sink.close(signal));
  await sink.open(signal);
  let seq = 0;
  const announce = async (type: string, data: object): Promise<SendResult> => {
    const body = Buffer.from(JSON.stringify({ event_type: type, data, user_id: user.id }));
    const event = contractEvent((seq += 1), { type, team: bench.teamId, user: user.id, body });
    const [result] = await sink.send([{ event, destination: null }], signal);
    return result!;
  };
  const named = (): unknown[] =>
    context.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields['type']);
  return { bench, path, named, sink, announce, user };
}

/** As the event says it, and the clock of the test. */
const WHOSE = {
  team_id: MADE_UP_TEAM,
  client_user_id: 'customer-patient-123',
  _loaded_at: '2026-11-21T03:15:02.123Z',
};

/** Rows of the only pull. */
function rowsOf(path: string, table: string): Record<string, unknown>[] {
  const [folder = ''] = readdirSync(path);
  return readFileSync(join(path, folder, `${table}.ndjson`), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const JOB_UPDATED = 'lab_report.parsing_job.updated';

test('rows say whose they are, and when they were fetched', async () => {
  const { announce, user, path } = await openFollowing();
  const range = { user_id: user.id, start_date: '2026-01-01', end_date: '2026-01-02' };
  expect(await announce('historical.data.meal.created', range)).toEqual({ status: 'delivered' });
  for (const table of ['meals', 'meal_items']) {
    const rows = rowsOf(path, table);
    expect(rows.length).toBeGreaterThan(5);
    for (const row of rows) expect(row).toMatchObject({ ...WHOSE, user_id: user.id });
  }
});

test('a changed parsing job becomes rows, once a status, with what the service says of it then', async () => {
  const { bench, path, announce, user } = await openFollowing();
  const job = bench.state.parsingJobs.create(user, 1000, false);
  await until('the results', () => job.status === 'completed');
  for (let n = 0; n < 3; n += 1)
    expect(await announce(JOB_UPDATED, { id: job.id, status: 'completed' })).toEqual({ status: 'delivered' });
  expect(readdirSync(path)).toHaveLength(1);
  expect(rowsOf(path, 'parsing_jobs')).toMatchObject([{ id: job.id, status: 'completed' }]);
  for (const table of ['parsing_jobs', 'parsing_job_results'])
    for (const row of rowsOf(path, table)) expect(row).toMatchObject({ ...WHOSE, user_id: user.id });
  expect(rowsOf(path, 'parsing_job_results').map((row) => row['job_id'])).toEqual([job.id, job.id, job.id]);
  // Another status is another state of it.
  expect(await announce(JOB_UPDATED, { id: job.id, status: 'pending_review' })).toEqual({
    status: 'delivered',
  });
  expect(readdirSync(path)).toHaveLength(2);
});

test('paths of the two operations can be others', async () => {
  const options = { path: 'x', baseUrl: 'http://127.0.0.1:1', apiKey: 'x' };
  const { paths } = parseOptions({ ...options, paths: { parsingJob: '/v9/job/{job_id}' } });
  expect(paths).toEqual({ mealSummary: '/v2/summary/meal/{user_id}', parsingJob: '/v9/job/{job_id}' });
  expect(() => parseOptions({ ...options, paths: { parsingJob: '/v9/job' } })).toThrow('paths.parsingJob');
});

test('a job that cannot be read stops nothing else', async () => {
  const { bench, announce, user } = await openFollowing();
  const unknown = { id: '00000000-0000-4000-8000-00000000dead', status: 'completed' };
  expect(await announce(JOB_UPDATED, unknown)).toMatchObject({ status: 'refused', code: 'service_refused' });
  expect(await announce(JOB_UPDATED, { id: 7 })).toMatchObject({
    status: 'refused',
    code: 'not_a_completion',
  });
  bench.state.teams.get(bench.teamId).features.parsing = false;
  const job = bench.state.parsingJobs.create(user, 1000, false);
  const closed = await announce(JOB_UPDATED, { id: job.id, status: 'started' });
  expect(closed).toMatchObject({ status: 'refused', code: 'service_refused' });
});

test('what no operation reads is confirmed, counted by type, and named in the log once', async () => {
  const { announce, sink, named, path } = await openFollowing();
  for (const type of ['sleep', 'steps', 'sleep'].map((name) => `historical.data.${name}.created`))
    expect(await announce(type, { start_date: '2026-01-01' })).toEqual({ status: 'delivered' });
  expect(await announce('historical.made_up', {})).toEqual({ status: 'delivered' });
  expect(await announce('daily.data.meal.created', {})).toEqual({ status: 'delivered' });
  expect(Object.fromEntries(sink.skipped?.() ?? [])).toEqual({
    'historical.data.sleep.created': 2,
    'historical.data.steps.created': 1,
    'historical.made_up': 1,
  });
  expect(named()).toEqual([
    'historical.data.sleep.created',
    'historical.data.steps.created',
    'historical.made_up',
  ]);
  expect(readdirSync(path)).toEqual([]);
});

test('a range that is announced before it is whole is pulled again once it is', async () => {
  const { announce, user, path } = await openFollowing();
  const range = {
    user_id: user.id,
    start_date: '2026-01-01',
    end_date: '2026-01-02',
    provider: user.sources[0],
  };
  for (const is_final of [false, false, true, true])
    expect(await announce('historical.data.meal.created', { ...range, is_final })).toEqual({
      status: 'delivered',
    });
  expect(await announce('historical.data.meal.created', range)).toEqual({ status: 'delivered' });
  expect(readdirSync(path)).toHaveLength(2);
});
