import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { METRICS } from '../../src/metrics/catalogue.ts';
import { madeUpEvent, MADE_UP_TEAM } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { parseMetrics, typesIn } from './prometheus-text.ts';

const WILFUL = fileURLToPath(new URL('./wilful-sink.ts', import.meta.url));
const OLD_SECRET = `whsec_${Buffer.from('a made-up secret to be retired soon').toString('base64')}`;

async function scrape(receiver: Serving): Promise<{ text: string; series: Map<string, number> }> {
  const { body, headers, statusCode } = await request(`${receiver.adminUrl}/metrics`);
  const text = await body.text();
  expect(statusCode, text).toBe(200);
  expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
  return { text, series: parseMetrics(text) };
}

async function readiness(receiver: Serving): Promise<{ status: number; json: unknown }> {
  const { body, statusCode } = await request(`${receiver.adminUrl}/readyz?verbose`);
  return { status: statusCode, json: await body.json() };
}

interface Prepared {
  readonly receiver: Serving;
  readonly folder: string;
  readonly config: string;
}

/** A receiver with an archive, and a sink that does what the folder says. */
async function start(files: readonly string[], changes: Record<string, object> = {}): Promise<Prepared> {
  const folder = await temporaryFolder();
  const own = join(folder, 'own');
  mkdirSync(own);
  for (const file of files) writeFileSync(join(own, file), '');
  const config = writeConfig(folder, {
    signing: { secrets: [SECRET, OLD_SECRET] },
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      own: { type: WILFUL, folder: own },
    },
    routes: [
      { match: ['labtest.', 'lab_report.'], to: ['own', 'archive'] },
      { match: ['daily.'], to: ['archive'] },
    ],
    ...changes,
  });
  return { receiver: await Receiver.start(config), folder: own, config };
}

test('the metrics say what has happened, by bounded labels only', async () => {
  const { receiver } = await start(['open']);
  const send = async (n: number, type: string, secret = SECRET): Promise<number> => {
    const { id, body } = madeUpEvent(n, type);
    return (await postSigned(receiver.url, body, { id, secret })).status;
  };
  for (let n = 0; n < 6; n += 1) expect(await send(n, 'daily.data.meal.created')).toBe(202);
  expect(await send(6, 'labtest.order.updated')).toBe(202);
  expect(await send(7, 'something.nobody.knows')).toBe(202);
  expect(await send(8, 'daily.data.meal.created', OLD_SECRET)).toBe(202);
  const { id, body } = madeUpEvent(9, 'daily.data.meal.created');
  expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  expect((await postSigned(receiver.url, body, { id })).status).toBe(200);
  const invalid = Buffer.from(JSON.stringify({ event_type: 'daily.data.meal.created', data: {} }));
  expect((await postSigned(receiver.url, invalid, { id: 'msg_invalid' })).status).toBe(202);
  expect((await postSigned(receiver.url, body, { headers: { 'webhook-signature': 'v1,AAAA' } })).status).toBe(
    401,
  );
  await receiver.drained();
  await until('the dead letter', async () => (await receiver.status()).journal.deadLetters === 1);

  const { text, series } = await scrape(receiver);
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
  for (let n = 0; n < 130; n += 1) {
    const { id, body } = madeUpEvent(n, `daily.made_up_${n}`);
    await postSigned(receiver.url, body, { id });
  }
  const { series } = await scrape(receiver);
  const types = [...series].filter(([name]) => name.startsWith('millrace_event_types_total{'));
  expect(types.length).toBe(101);
  expect(series.get('millrace_event_types_total{type="(other)"}')).toBe(30);
});

test('a sink that does not open keeps no delivery away: the journal has it for later', async () => {
  const { receiver, folder } = await start([]);
  const ready = await readiness(receiver);
  expect(ready).toMatchObject({ status: 200, json: { status: 'ready' } });
  expect((ready.json as { checks: object[] }).checks).toContainEqual({
    name: 'sink own',
    ok: false,
    required: false,
    state: 'opening',
  });
  const { series } = await scrape(receiver);
  expect([series.get('millrace_ready'), series.get('millrace_sink_up{sink="own"}')]).toEqual([1, 0]);
  const { id, body } = madeUpEvent(0, 'labtest.order.updated');
  expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  writeFileSync(join(folder, 'open'), '');
  writeFileSync(join(folder, 'mild'), '');
  const sent = join(folder, 'sent');
  // The file is there a moment before its line.
  await until('the event is delivered', () => existsSync(sent) && readFileSync(sent, 'utf8').includes(id));
});

const STATELESS = { acknowledge: 'delivered' } as unknown as Record<string, object>;

test('without a journal it is not ready until every required sink has been opened', async () => {
  const { receiver, folder } = await start([], STATELESS);
  const before = await readiness(receiver);
  expect(before).toMatchObject({ status: 503, json: { status: 'not ready' } });
  expect((before.json as { checks: object[] }).checks).toContainEqual({
    name: 'sink own',
    ok: false,
    required: true,
    state: 'opening',
  });
  expect((await scrape(receiver)).series.get('millrace_ready')).toBe(0);
  writeFileSync(join(folder, 'open'), '');
  await until('readiness', async () => (await readiness(receiver)).status === 200);
  const { body } = await request(`${receiver.adminUrl}/readyz`);
  expect(await body.json()).toEqual({ status: 'ready' });
});

test('without a journal a best-effort sink that does not open keeps nobody waiting', async () => {
  const folder = await temporaryFolder();
  const { receiver } = await start([], {
    ...STATELESS,
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      own: { type: WILFUL, folder, required: false },
    },
  });
  expect((await readiness(receiver)).status).toBe(200);
  expect((await scrape(receiver)).series.get('millrace_sink_up{sink="own"}')).toBe(0);
});

test('reloads are counted, and a config that cannot be used is told of', async () => {
  const { receiver, config } = await start(['open']);
  const good = readFileSync(config, 'utf8');
  const { id, body } = madeUpEvent(0, 'daily.data.meal.created');
  expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  writeFileSync(config, 'sinks: {');
  receiver.signal('SIGHUP');
  const failed = 'millrace_reloads_total{result="failed"}';
  await until('the failed reload', async () => (await scrape(receiver)).series.get(failed) === 1);
  expect((await scrape(receiver)).series.get('millrace_config_in_force')).toBe(0);
  writeFileSync(config, good);
  receiver.signal('SIGHUP');
  const succeeded = 'millrace_reloads_total{result="succeeded"}';
  await until('the reload', async () => (await scrape(receiver)).series.get(succeeded) === 1);
  const { series } = await scrape(receiver);
  expect(series.get('millrace_config_in_force')).toBe(1);
  // The secrets and routes of now: what was counted for those before is gone.
  expect(series.get('millrace_signature_secret_last_used_timestamp_seconds{index="0"}')).toBe(0);
  expect(series.get('millrace_route_events_total{route="1",match="daily."}')).toBe(0);
});

test('the trace of a request goes with its event through the journal to the sink', async () => {
  const { receiver, folder } = await start(['open', 'mild']);
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
    expect((await postSigned(receiver.url, body, { id, headers: { ...headers } })).status).toBe(202);
  }
  await receiver.drained();
  const lines = readFileSync(join(folder, 'sent'), 'utf8').trim().split('\n');
  const got = new Map(lines.map((line) => JSON.parse(line) as [string, object | null]));
  expect([...sent.keys()].map((id) => got.get(id))).toEqual([traces[0], traces[1], null, null]);
});
