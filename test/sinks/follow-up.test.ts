import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MillraceError } from '../../src/core/errors.ts';
import type { Inlet, SendResult, Sink } from '../../src/core/sink.ts';
import type { IncomingMessage } from '../../src/core/ingest.ts';
import { MADE_UP_TEAM } from '../../src/sandbox/made-up-events.ts';
import { startSandbox } from '../../src/sandbox/start.ts';
import type { User } from '../../src/sandbox/users.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { parseOptions } from '../../src/sinks/follow-up/config.ts';
import { createSink } from '../../src/sinks/follow-up/sink.ts';
import { DEFAULT_FIELDS } from '../../src/receive/validate/envelope.ts';
import { dataService, samplesOf, sleepOf, SOURCE } from '../history/backfill/data-service.ts';
import { until } from '../support/until.ts';
import { jsonLines } from '../support/json-lines.ts';
import { makeContext, signal, tempFolder } from './support.ts';

/** A sink on a sandbox of one user, and the events that announce its parsing jobs and meals. */
async function openFollowing(more: Parameters<typeof parseOptions>[0] = {}) {
  const bench = await startSandbox({ users: 1, days: 4, mealsPerDay: 3, speed: 1e6 });
  onTestFinished(() => bench.stop());
  const user = bench.state.users.list(bench.teamId)[0]!;
  const path = tempFolder();
  const context = makeContext();
  const open = async (inlet?: Inlet): Promise<Sink> => {
    const options = parseOptions({ path, baseUrl: bench.url, apiKey: bench.apiKey, ...Object(more) });
    const sink = createSink(options, { ...context, ...(inlet === undefined ? {} : { inlet }) });
    onTestFinished(() => sink.close(signal));
    await sink.open(signal);
    return sink;
  };
  let seq = 0;
  const announceTo = async (sink: Sink, type: string, data: object): Promise<SendResult> => {
    const body = Buffer.from(JSON.stringify({ event_type: type, data, user_id: user.id }));
    const event = contractEvent((seq += 1), { type, team: bench.teamId, user: user.id, body });
    const [result] = await sink.send([{ event, destination: null }], signal);
    return result!;
  };
  return { bench, path, context, user, open, announceTo };
}

/** The same, with one sink that is open. */
async function following() {
  const world = await openFollowing();
  const sink = await world.open();
  const announce = (type: string, data: object): Promise<SendResult> => world.announceTo(sink, type, data);
  return { ...world, sink, announce };
}

const DELIVERED = { status: 'delivered' };
const MEALS = 'historical.data.meal.created';
const rangeOf = ({ id }: User) => ({ user_id: id, start_date: '2026-01-01', end_date: '2026-01-02' });

function inletThat(take: Inlet['take']): Inlet {
  return { fields: () => DEFAULT_FIELDS, take };
}

const idsOf = (batch: readonly IncomingMessage[]): unknown[] =>
  batch.map(({ properties }) => properties['idempotency-key']);

test('a pull does not count as done before its events are in the journal', async () => {
  const { path, user, open, announceTo } = await openFollowing({ events: true });
  const isDone = (): boolean => readdirSync(path).some((key) => existsSync(join(path, key, 'done.json')));
  const refused: unknown[] = [];
  const full = inletThat((_source, batch) => {
    refused.push(...idsOf(batch));
    return Promise.reject(new MillraceError('journal_full', 'made up'));
  });
  const range = { ...rangeOf(user), end_date: '2026-01-03' };
  expect(await announceTo(await open(full), MEALS, range)).toMatchObject({ status: 'retry' });
  expect(isDone()).toBe(false);

  const taken: unknown[] = [];
  const doneBefore = new Set<boolean>();
  const free = inletThat((_source, batch) => {
    taken.push(...idsOf(batch));
    doneBefore.add(isDone());
    return Promise.resolve();
  });
  expect(await announceTo(await open(free), MEALS, range)).toEqual(DELIVERED);
  expect([isDone(), doneBefore, new Set(taken).size]).toEqual([true, new Set([false]), 9]);
  expect(taken).toEqual(expect.arrayContaining(refused));
});

test('events need a journal to go into', async () => {
  const { open } = await openFollowing({ events: true });
  await expect(open()).rejects.toMatchObject({
    code: 'config_invalid',
    detail: 'sinks.archive.events: needs a receiver with a journal',
  });
});

/** As the event says it, and the clock of the test. */
const WHOSE = {
  team_id: MADE_UP_TEAM,
  client_user_id: 'customer-patient-123',
  _loaded_at: '2026-11-21T03:15:02.123Z',
};

/** Rows of the only pull. */
function rowsOf(path: string, table: string): Record<string, unknown>[] {
  const [folder = ''] = readdirSync(path);
  return jsonLines(readFileSync(join(path, folder, `${table}.ndjson`)));
}

const JOB_UPDATED = 'lab_report.parsing_job.updated';

test('rows say whose they are, and when they were fetched', async () => {
  const { announce, user, path } = await following();
  expect(await announce(MEALS, rangeOf(user))).toEqual(DELIVERED);
  for (const table of ['meals', 'meal_items']) {
    const rows = rowsOf(path, table);
    expect(rows.length).toBeGreaterThan(5);
    for (const row of rows) expect(row).toMatchObject({ ...WHOSE, user_id: user.id });
  }
});

test('a changed parsing job becomes rows, once a status, with what the service says of it then', async () => {
  const { bench, path, announce, user } = await following();
  const job = bench.state.parsingJobs.create(user, 1000, false);
  await until('the results', () => job.status === 'completed');
  for (let n = 0; n < 3; n += 1)
    expect(await announce(JOB_UPDATED, { id: job.id, status: 'completed' })).toEqual(DELIVERED);
  expect(readdirSync(path)).toHaveLength(1);
  expect(rowsOf(path, 'parsing_jobs')).toMatchObject([{ id: job.id, status: 'completed' }]);
  for (const table of ['parsing_jobs', 'parsing_job_results'])
    for (const row of rowsOf(path, table)) expect(row).toMatchObject({ ...WHOSE, user_id: user.id });
  expect(rowsOf(path, 'parsing_job_results').map((row) => row['job_id'])).toEqual([job.id, job.id, job.id]);
  // Another status is another state of it.
  expect(await announce(JOB_UPDATED, { id: job.id, status: 'pending_review' })).toEqual(DELIVERED);
  expect(readdirSync(path)).toHaveLength(2);
});

test('paths of the two operations can be others', async () => {
  const options = { path: 'x', baseUrl: 'http://127.0.0.1:1', apiKey: 'x' };
  const { paths } = parseOptions({ ...options, paths: { parsingJob: '/v9/job/{job_id}' } });
  expect(paths).toEqual({ mealSummary: '/v2/summary/meal/{user_id}', parsingJob: '/v9/job/{job_id}' });
  expect(() => parseOptions({ ...options, paths: { parsingJob: '/v9/job' } })).toThrow('paths.parsingJob');
});

test('a job that cannot be read stops nothing else', async () => {
  const { bench, announce, user } = await following();
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
  const { announce, sink, context, path } = await following();
  for (const type of ['workout_stream', 'unknown', 'workout_stream'].map(
    (name) => `historical.data.${name}.created`,
  ))
    expect(await announce(type, { start_date: '2026-01-01' })).toEqual(DELIVERED);
  expect(await announce('historical.made_up', {})).toEqual(DELIVERED);
  expect(await announce('daily.data.meal.created', {})).toEqual(DELIVERED);
  expect(Object.fromEntries(sink.skipped?.() ?? [])).toEqual({
    'historical.data.workout_stream.created': 2,
    'historical.data.unknown.created': 1,
    'historical.made_up': 1,
  });
  const warned = context.lines.filter(({ level }) => level === 'warn');
  expect(warned.map(({ fields }) => fields['type'])).toEqual([
    'historical.data.workout_stream.created',
    'historical.data.unknown.created',
    'historical.made_up',
  ]);
  expect(readdirSync(path)).toEqual([]);
});

test('a range that is announced before it is whole is pulled again once it is', async () => {
  const { announce, user, path } = await following();
  const range = { ...rangeOf(user), provider: user.sources[0] };
  for (const is_final of [false, false, true, true])
    expect(await announce(MEALS, { ...range, is_final })).toEqual(DELIVERED);
  expect(await announce(MEALS, range)).toEqual(DELIVERED);
  expect(readdirSync(path)).toHaveLength(2);
});

test('a summary is followed like meals, and a series group by group', async () => {
  const service = await dataService(1);
  const [id = ''] = service.users;
  service.items.set(`${id} sleep`, sleepOf(id, 3));
  service.items.set(`${id} heartrate`, samplesOf(6));
  const path = tempFolder();
  const resources = { hrv: { path: '/v9/{user_id}/hrv', list: 'hrv', table: 'timeseries' } };
  const baseUrl = service.env['MILLRACE_SERVICE_BASE_URL'];
  const options = parseOptions({ path, baseUrl, apiKey: 'x', events: true, resources });
  const taken: Record<string, unknown>[] = [];
  const inlet = inletThat((_source, batch) => {
    taken.push(...batch.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>));
    return Promise.resolve();
  });
  const sink = createSink(options, { ...makeContext(), inlet });
  onTestFinished(() => sink.close(signal));
  await sink.open(signal);
  const data = { user_id: id, start_date: '2026-01-01', end_date: '2026-01-31', provider: 'made_up' };
  for (const [n, resource] of ['sleep', 'heartrate', 'hrv'].entries()) {
    const type = `historical.data.${resource}.created`;
    const body = Buffer.from(JSON.stringify({ event_type: type, data, user_id: id }));
    const event = contractEvent(n, { type, team: MADE_UP_TEAM, user: id, body });
    const [result] = await sink.send([{ event, destination: null }], signal);
    expect(result).toMatchObject({ status: resource === 'hrv' ? 'refused' : 'delivered' });
  }
  expect(service.asked.at(-1)).toContain(`/v9/${id}/hrv?start_date=2026-01-01`);
  const sleep = sleepOf(id, 3).map((item) => ({
    event_type: 'daily.data.sleep.created',
    data: item,
    user_id: id,
  }));
  const groups = [samplesOf(6).slice(0, 4), samplesOf(6).slice(4)].map((samples) => ({
    event_type: 'daily.data.heartrate.created',
    data: { source: SOURCE, data: samples },
  }));
  expect(taken).toMatchObject([...sleep, ...groups]);
  const rows = readdirSync(path).flatMap((key) =>
    readdirSync(join(path, key)).filter((name) => name.endsWith('.ndjson')),
  );
  expect(rows.toSorted()).toEqual(['sleep.ndjson', 'timeseries.ndjson']);
});
