import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { METRICS } from '../../../src/observe/metrics/catalogue.ts';
import { madeUpEvent, MADE_UP_TEAM } from '../../../src/sandbox/made-up-events.ts';
import { Place } from '../../support/place.ts';
import type { Serving } from '../../support/serving.ts';
import { SECRET } from '../../support/signed-events.ts';
import { until } from '../../support/until.ts';
import { parseMetrics, typesIn } from './prometheus-text.ts';

const WILFUL = fileURLToPath(new URL('./wilful-sink.ts', import.meta.url));
const MEAL = 'daily.data.meal.created';
const OLD_SECRET = `whsec_${Buffer.from('a made-up secret to be retired soon').toString('base64')}`;

const seriesOf = async (receiver: Serving) => parseMetrics(await receiver.metrics());

/** A receiver with an archive, and a sink that does what the files of its folder say. */
async function start(files: readonly string[], own: object = {}, changes: object = {}) {
  const place = await Place.make((folder) => ({
    signing: { secrets: [SECRET, OLD_SECRET] },
    sinks: {
      archive: { type: 'files', path: `${folder}/archive` },
      own: { type: WILFUL, folder: `${folder}/own`, ...own },
    },
    routes: [
      { match: ['labtest.', 'lab_report.'], to: ['own', 'archive'] },
      { match: ['daily.'], to: ['archive'] },
    ],
    ...changes,
  }));
  mkdirSync(place.at('own'));
  for (const file of files) writeFileSync(place.at('own', file), '');
  return { receiver: await place.start(), place };
}

test('the metrics say what has happened, by bounded labels only', async () => {
  const { receiver } = await start(['open']);
  await receiver.send(6, 0, MEAL);
  await receiver.send(1, 6, 'labtest.order.updated');
  await receiver.send(1, 7, 'something.never.documented');
  const [old, { id, body }] = [madeUpEvent(8, MEAL), madeUpEvent(9, MEAL)];
  expect((await receiver.post(old.body, { id: old.id, secret: OLD_SECRET })).status).toBe(202);
  expect((await receiver.post(body, { id })).status).toBe(202);
  expect((await receiver.post(body, { id })).status).toBe(200);
  const invalid = Buffer.from(JSON.stringify({ event_type: 'daily.data.meal.created', data: {} }));
  expect((await receiver.post(invalid, { id: 'msg_invalid' })).status).toBe(202);
  expect((await receiver.post(body, { headers: { 'webhook-signature': 'v1,AAAA' } })).status).toBe(401);
  await receiver.drained();
  await until('the dead letter', async () => (await receiver.status()).journal.deadLetters === 1);

  const page = await receiver.ask('/metrics');
  expect([page.status, page.headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^text\/plain; version=0\.0\.4/),
  ]);
  const text = await page.text();
  const series = parseMetrics(text);
  const get = (name: string): number | undefined => series.get(name);
  const outcome = (name: string): number | undefined =>
    get(`millrace_events_total{source="webhooks",outcome="${name}"}`);
  expect([outcome('accepted'), outcome('duplicate'), outcome('quarantined')]).toEqual([10, 1, 1]);
  expect([outcome('signature_invalid'), outcome('gone'), outcome('journal_full')]).toEqual([1, 0, 0]);
  expect(get('millrace_event_types_total{type="daily.data.meal.created"}')).toBe(8);
  expect(get('millrace_route_events_total{route="0",match="labtest.,lab_report."}')).toBe(1);
  expect(get('millrace_route_events_total{route="1",match="daily."}')).toBe(8);
  expect(get('millrace_route_events_total{route="none",match=""}')).toBe(1);
  expect(get('millrace_signature_matches_total{index="1"}')).toBe(1);
  const used = [0, 1].map((index) =>
    get(`millrace_signature_secret_last_used_timestamp_seconds{index="${index}"}`),
  );
  expect(used[0]).toBeGreaterThanOrEqual(used[1] ?? Infinity);
  expect(used[1]).toBeGreaterThan(0);
  expect(get('millrace_sink_delivered_total{sink="archive"}')).toBe(9);
  expect(get('millrace_sink_dead_letters_total{sink="own",code="made_up_code"}')).toBe(1);
  expect(get('millrace_dead_letter_events')).toBe(1);
  expect(get('millrace_quarantine_events')).toBe(1);
  expect(get('millrace_quarantined_total{code="team_missing"}')).toBe(1);
  expect(get('millrace_sink_up{sink="own"}')).toBe(1);
  expect(get('millrace_sink_backlog_events{sink="archive"}')).toBe(0);
  expect(get('millrace_sink_backlog_age_seconds{sink="archive"}')).toBe(0);
  expect(get('millrace_ready')).toBe(1);
  expect(get('millrace_journal_bytes')).toBeGreaterThan(0);
  expect(get('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0);

  // Whatever was answered was timed, and buckets hold everything up to their bound.
  expect(get('millrace_receive_seconds_count')).toBe(13);
  expect(get('millrace_receive_seconds_bucket{le="+Inf"}')).toBe(13);
  expect(get('millrace_delivery_seconds_count{sink="archive"}')).toBe(9);
  expect(get('millrace_commit_seconds_count')).toBeGreaterThan(0);
  expect(get('millrace_send_seconds_count{sink="own"}')).toBe(1);
  const buckets = [...series].filter(([name]) => name.startsWith('millrace_receive_seconds_bucket'));
  expect(buckets.map(([, value]) => value)).toEqual(buckets.map(([, value]) => value).sort((a, b) => a - b));

  // Everything in the catalogue is there, as what it says it is.
  const types = typesIn(text);
  for (const { name, type } of METRICS) expect([name, types.get(name)]).toEqual([name, type]);
  for (const secret of [MADE_UP_TEAM, '00000000-0000-4000-8000-0000000010', 'made-up-client', SECRET, 'msg_'])
    expect(text).not.toContain(secret);
});

test('a sender that makes up types does not make up series', async () => {
  const { receiver } = await start(['open']);
  await receiver.send(Array.from({ length: 130 }, (_, n) => madeUpEvent(n, `daily.made_up_${n}`)));
  const series = await seriesOf(receiver);
  const types = [...series].filter(([name]) => name.startsWith('millrace_event_types_total{'));
  expect(types.length).toBe(101);
  expect(series.get('millrace_event_types_total{type="(other)"}')).toBe(30);
});

const STATELESS = { acknowledge: 'delivered' };

test.each([
  ['with a journal a sink that does not open keeps no delivery away', 200, {}, {}],
  ['without one it is not ready until every required sink has been opened', 503, {}, STATELESS],
  ['but no one waits for a best-effort sink', 200, { required: false }, STATELESS],
])('%s', async (_name, status, own, changes) => {
  const { receiver, place } = await start([], own, changes);
  const before = await receiver.call('/readyz?verbose');
  const [isReady, isRequired] = [status === 200, status === 503];
  expect([before.status, before.answer.status]).toEqual([status, isReady ? 'ready' : 'not ready']);
  expect(before.answer.checks).toContainEqual({
    name: 'sink own',
    ok: false,
    required: isRequired,
    state: 'opening',
  });
  const series = await seriesOf(receiver);
  expect([series.get('millrace_ready'), series.get('millrace_sink_up{sink="own"}')]).toEqual([+isReady, 0]);
  const sent = isReady && changes !== STATELESS ? await receiver.send(1, 0, 'labtest.order.updated') : null;
  writeFileSync(place.at('own/mild'), '');
  writeFileSync(place.at('own/open'), '');
  await until('readiness', async () => (await receiver.ask('/readyz')).status === 200);
  expect((await receiver.call('/readyz')).answer).toEqual({ status: 'ready' });
  // What the journal had for later; the file is there a moment before its line.
  const file = place.at('own/sent');
  for (const id of sent?.keys() ?? [])
    await until('the event', () => existsSync(file) && readFileSync(file, 'utf8').includes(id));
});

test('reloads are counted, and a config that cannot be used is reported', async () => {
  const { receiver, place } = await start(['open']);
  const good = readFileSync(place.config, 'utf8');
  await receiver.send(1, 0, MEAL);
  writeFileSync(place.config, 'sinks: {');
  expect(await receiver.reload()).toMatchObject({ msg: expect.stringContaining('failed') as string });
  const failed = await seriesOf(receiver);
  expect(failed.get('millrace_reloads_total{result="failed"}')).toBe(1);
  expect(failed.get('millrace_config_in_force')).toBe(0);
  writeFileSync(place.config, good);
  await receiver.reload();
  const series = await seriesOf(receiver);
  expect(series.get('millrace_reloads_total{result="succeeded"}')).toBe(1);
  expect(series.get('millrace_config_in_force')).toBe(1);
  // The secrets and routes of now: what was counted for those before is gone.
  expect(series.get('millrace_signature_secret_last_used_timestamp_seconds{index="0"}')).toBe(0);
  expect(series.get('millrace_route_events_total{route="1",match="daily."}')).toBe(0);
});

test('the trace of a request goes with its event through the journal to the sink', async () => {
  const { receiver, place } = await start(['open', 'mild']);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const traces = [
    { traceparent, tracestate: 'made=up,other=1' },
    { traceparent },
    // Not well-formed: as if there were none.
    { traceparent: `ff${traceparent.slice(2)}` },
    {},
  ];
  const sent = new Map<string, object>();
  for (const [n, headers] of traces.entries()) {
    const { id, body } = madeUpEvent(n, 'labtest.order.updated');
    sent.set(id, headers);
    expect((await receiver.post(body, { id, headers: { ...headers } })).status).toBe(202);
  }
  await receiver.drained();
  const lines = readFileSync(place.at('own/sent'), 'utf8').trim().split('\n');
  const got = new Map(lines.map((line) => JSON.parse(line) as [string, object | null]));
  expect([...sent.keys()].map((id) => got.get(id))).toEqual([traces[0], traces[1], null, null]);
});
