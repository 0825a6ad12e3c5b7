import { expect, test } from 'vitest';
import { run } from '../cli/run.ts';
import { sandboxCommand } from '../../src/cli/sandbox/command.ts';
import { HOUR, MINUTE } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { startReceiver } from './receiver.ts';
import { Bench } from './support.ts';

type Item = Readonly<Record<string, unknown>> & { readonly source: { readonly provider: string } };
type Groups = Readonly<
  Record<string, readonly { readonly source: object; readonly data: readonly object[] }[]>
>;

const SUMMARIES =
  'activity sleep workouts body electrocardiogram sleep_cycle menstrual_cycle meal:meals'.split(' ');
const SERIES = (
  'afib_burden basal_body_temperature blood_oxygen blood_pressure body_fat body_mass_index body_temperature ' +
  'body_temperature_delta body_weight caffeine calories_active calories_basal carbohydrates cholesterol ' +
  'daylight_exposure distance electrocardiogram_voltage fall floors_climbed forced_expiratory_volume_1 ' +
  'forced_vital_capacity glucose handwashing heart_rate_alert heart_rate_recovery_one_minute heartrate hrv ' +
  'hypnogram ige igg inhaler_usage insulin_injection lean_body_mass mindfulness_minutes note ' +
  'peak_expiratory_flow_rate respiratory_rate sleep_apnea_alert sleep_breathing_disturbance stand_duration ' +
  'stand_hour steps stress_level uv_exposure vo2_max waist_circumference water wheelchair_push ' +
  'workout_distance workout_duration workout_swimming_stroke'
).split(' ');
const DAY_1 = 'start_date=2026-01-01&end_date=2026-01-01';

async function items(bench: Bench, resource: string, query: string, list = resource): Promise<Item[]> {
  const { status, json } = await bench.get(`/v2/summary/${resource}/{user1}?${query}`);
  expect([200, 206]).toContain(status);
  return json[list] as Item[];
}

async function groups(bench: Bench, resource: string, query: string): Promise<Groups> {
  const { json } = await bench.get(`/v2/timeseries/{user1}/${resource}/grouped?${query}`);
  return json['groups'] as Groups;
}

test.each(SUMMARIES.map((name) => name.split(':') as [string, string?]))(
  '%s: by provider',
  async (name, list) => {
    const bench = await Bench.start();
    const all = await items(bench, name, 'start_date=2026-01-01', list);
    const some = await items(bench, name, 'start_date=2026-01-01&provider=made_up', list);
    expect(some.length).toBeGreaterThan(0);
    expect(some).toEqual(all.filter(({ source }) => source.provider === 'made_up'));
    expect(some.length).toBeLessThan(all.length);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  },
);

test.each([
  'start_date=2026-01-02&end_date=2026-01-02',
  'start_date=2026-01-02T00:00:00Z&end_date=2026-01-02T23:59:59Z',
  'start_date=2026-01-02T00:00:00Z&end_date=2026-01-02T23:59:59.999999Z',
])('%s: summaries are cut by their calendar date, which is that of the user', async (query) => {
  const bench = await Bench.start({ providers: ['made_up'] });
  const [sleep, ...others] = await items(bench, 'sleep', query);
  expect([sleep, others]).toMatchObject([
    { calendar_date: '2026-01-02', bedtime_start: '2026-01-01T12:30:00+00:00', timezone_offset: 36_000 },
    [],
  ]);
  const { json } = await bench.get('/v2/summary/profile/{user1}');
  expect(json).toMatchObject({ user_id: bench.user(1), birth_date: '1990-01-01' });
});

test('every series is there; hours cut it, and pages of it end', async () => {
  const bench = await Bench.start({ providers: ['made_up'], samplesPerDay: 96 });
  for (const name of SERIES) {
    const [group] = (await groups(bench, name, `${DAY_1}T03:30:00Z`))['made_up'] ?? [];
    expect([name, group?.data.length]).toEqual([name, 15]);
  }
  const seen: unknown[] = [];
  let pages = 0;
  for (let cursor: string | null = ''; cursor !== null; pages += 1) {
    const query = `start_date=2026-01-01${cursor === '' ? '' : `&next_cursor=${cursor}`}`;
    const dense = await bench.get(`/v2/timeseries/{user1}/heartrate/grouped?${query}`);
    cursor = dense.json['next_cursor'] as string | null;
    seen.push(...((dense.json['groups'] as Groups)['made_up']?.[0]?.data ?? []));
  }
  expect([pages, new Set(seen.map((sample) => JSON.stringify(sample))).size]).toEqual([2, 960]);
});

test('an item and a sample are what their events brought; a corrected one brings another event', async () => {
  const receiver = await startReceiver();
  const bench = await Bench.start({ webhooks: [{ url: receiver.url }] });
  const read = async (): Promise<unknown[]> => [
    ...(await items(bench, 'sleep', DAY_1)),
    ...Object.values(await groups(bench, 'body_weight', DAY_1)).flat(),
  ];
  const before = await read();
  for (const resource of ['sleep', 'body_weight'])
    bench.sandbox.sendData(bench.user(1), resource, '2026-01-01');
  await until('the events', () => receiver.received.length === before.length);
  const sent = receiver.received.map(({ event }) => event as { event_type: string; data: object });
  expect(new Set(sent.map(({ event_type: type }) => type))).toEqual(
    new Set(['daily.data.sleep.created', 'daily.data.weight.created']),
  );
  expect(sent.map(({ data }) => data)).toEqual(expect.arrayContaining(before));
  const whole = await items(bench, 'body', 'start_date=2026-01-01');
  bench.clock.advance(HOUR);
  const later = await items(bench, 'body', 'start_date=2026-01-01');
  const changed = later.filter((item, n) => JSON.stringify(item) !== JSON.stringify(whole[n]));
  expect(changed.length).toBeGreaterThan(0);
  expect(changed.length).toBeLessThan(later.length / 2);
  expect(later.map(({ id }) => id)).toEqual(whole.map(({ id }) => id));
});

test('a test makes items vanish, and breaks a document off', async () => {
  const bench = await Bench.start();
  const [first, ...rest] = await items(bench, 'sleep', 'start_date=2026-01-01');
  bench.state.health.hasVanished = (resource, { id }) => resource === 'sleep' && id === first!['id'];
  expect(await items(bench, 'sleep', 'start_date=2026-01-01')).toEqual(rest);
  for (const path of ['/v2/summary/sleep/{user}', '/v2/timeseries/{user}/steps/grouped']) {
    bench.state.faults.next({ kind: 'drop-after' });
    await expect(bench.get(`${path}?start_date=2026-01-01`)).rejects.toThrow('terminated');
  }
});

test.each([
  ['partial', 206, 'success'],
  ['failure', 200, 'failure'],
  ['not_pulled', 200, undefined],
] as const)('an outage of a provider, %s: %i', async (outage, status, shown) => {
  const bench = await Bench.start({ providers: ['made_up', 'made_up_bulk_a'] });
  for (const provider of ['made_up', 'made_up_bulk_a']) await bench.trigger(provider, 1);
  bench.clock.advance(MINUTE);
  bench.state.health.outages.set('made_up', outage);
  const answer = await bench.get(`/v2/summary/sleep/{user}?${DAY_1}`);
  const providers = (answer.json['sleep'] as Item[]).map(({ source }) => source.provider);
  expect([answer.status, providers]).toEqual([status, ['made_up_bulk_a']]);
  const series = await bench.get(`/v2/timeseries/{user}/steps/grouped?${DAY_1}`);
  expect([series.status, Object.keys(series.json['groups'] as object)]).toEqual([status, ['made_up_bulk_a']]);
  const { json } = await bench.get('/v2/introspect/historical_pull');
  const [user] = json['data'] as {
    provider: Record<string, { pulled: Record<string, object>; not_pulled: string[] }>;
  }[];
  const { pulled, not_pulled } = user!.provider['made_up']!;
  expect((pulled['sleep'] as { status: string } | undefined)?.status).toBe(shown);
  expect(not_pulled.includes('sleep')).toBe(outage === 'not_pulled');
  expect(user!.provider['made_up_bulk_a']).toMatchObject({ pulled: { heartrate: { status: 'success' } } });
});

test('a pull announces each resource that it brings, and with data after a pull they are there then', async () => {
  const bench = await Bench.start({ data: 'after_pull', providers: ['made_up'] });
  expect(await items(bench, 'sleep', DAY_1)).toEqual([]);
  await bench.trigger('made_up', 2);
  bench.clock.advance(MINUTE);
  const { counts } = bench.state.events;
  for (const name of [...SUMMARIES.map((one) => one.split(':')[0]!), 'profile', 'weight', 'fat', 'heartrate'])
    expect([name, counts.get(`historical.data.${name}.created`)]).toEqual([name, expect.any(Number)]);
  expect(await items(bench, 'sleep', DAY_1)).toHaveLength(1);
  expect(Object.keys(await groups(bench, 'body_weight', DAY_1))).toEqual(['made_up']);
});

test('streams of one sleep and one workout', async () => {
  const bench = await Bench.start();
  const [sleep] = await items(bench, 'sleep', DAY_1);
  const { json: asleep } = await bench.get(`/v2/timeseries/sleep/${String(sleep!['id'])}/stream`);
  const [[beat], [stage]] = [asleep['heartrate'], asleep['hypnogram']] as [object[], object[]];
  expect([beat, stage]).toMatchObject([{ unit: 'bpm' }, { end: expect.any(String) }]);
  const [workout] = await items(bench, 'workouts', DAY_1);
  const { json: moved } = await bench.get(`/v2/timeseries/workouts/${String(workout!['id'])}/stream`);
  expect([(moved['time'] as number[]).length, (moved['heartrate'] as number[]).length]).toEqual([10, 10]);
  expect((await bench.get(`/v2/timeseries/sleep/${bench.user()}/stream`)).status).toBe(404);
});

test('--providers names the providers', async () => {
  const bench = await Bench.start({ providerNames: ['acme', 'acme_watch'] });
  const { json } = await bench.get('/v2/user/{user}');
  expect((json['connected_sources'] as Item[]).map(({ source }) => source)).toMatchObject([
    { slug: 'acme' },
    { slug: 'acme_watch' },
  ]);
  expect((await bench.trigger('acme', 2)).status).toBe(202);
  expect((await bench.trigger('made_up', 2)).status).toBe(422);
  const args = ['--port', '0', '--json', '--providers', 'acme, Acme'];
  await expect(run(sandboxCommand, args, {}, AbortSignal.abort())).rejects.toThrow('provider "Acme"');
});
