import { describe, expect, test } from 'vitest';
import { Bench } from './support.ts';

const UUID = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
) as string;
const TIME = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?\+00:00$/) as string;
const TEXT = expect.any(String) as string;
const NUMBER = expect.any(Number) as number;

// That every documented field is there is held by test/tables/answers.test.ts: here is what fields look like.
describe('Resources and their fields', () => {
  test('Meal', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get(`/v2/summary/meal/${bench.user()}?start_date=2026-01-01`);
    const meals = json['meals'] as { source: object; data: Record<string, { macros: { fats: object } }> }[];
    const usual = meals.filter(({ source }) => 'provider' in source);
    expect([meals.length, usual.length]).toEqual([30, expect.any(Number)]);
    const times = { timestamp: TIME, created_at: TIME, updated_at: TIME };
    const meal = { id: UUID, user_id: bench.user(), ...times, source_id: NUMBER, priority_id: NUMBER };
    expect(usual).toEqual(usual.map(() => expect.objectContaining(meal) as object));
    const foods = usual.flatMap(({ data }) => Object.values(data));
    expect(foods[0]).toMatchObject({ energy: { unit: 'kcal', value: NUMBER }, macros: { carbs: NUMBER } });
    expect(new Set(foods.map(({ macros }) => Object.keys(macros.fats).join(' ')))).toEqual(
      new Set(['total', 'total saturated monounsaturated polyunsaturated omega3 omega6']),
    );
  });

  test('Lab marker: some without a unit, some with a price that is no number', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get('/v3/lab_tests/markers?size=100');
    const markers = json['markers'] as Record<string, unknown>[];
    const results = [{ id: NUMBER, lab_id: NUMBER, loinc: { id: NUMBER, code: TEXT } }];
    const marker = { id: NUMBER, lab_id: NUMBER, type: 'biomarker', price: TEXT, expected_results: results };
    expect(markers).toMatchObject(Array.from({ length: 100 }, () => marker));
    expect(markers.some(({ unit }) => unit === null)).toBe(true);
    expect(markers.some(({ price }) => Number.isNaN(Number(price)))).toBe(true);
  });

  test('Lab account, area information and insurance', async () => {
    const bench = await Bench.start();
    const { json: accounts } = await bench.get('/v3/lab_test/lab_account');
    const team_id_allowlist = [bench.sandbox.teamId];
    const account = { id: UUID, team_id_allowlist, org_id: UUID, business_units: [TEXT] };
    for (const one of accounts['data'] as object[]) expect(one).toMatchObject(account);
    const { json: area } = await bench.get('/v3/order/area/info?zip_code=12345&radius=100');
    const providers = [{ tier: ['appointment-ready'] }, { tier: ['appointment-request'] }];
    expect(area).toMatchObject({ zip_code: '12345', phlebotomy: { is_served: true, providers } });
    const centers = { patient_service_centers: { within_radius: NUMBER, radius: '100' } };
    const labs = Object.values(area['central_labs'] as object);
    expect(labs).toMatchObject([centers, centers, centers, centers]);
    expect(JSON.stringify(labs)).toContain('"stat"');
    const { json: insurance } = await bench.get(`/v2/user/${bench.user()}/insurance/latest`);
    const dob = expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/) as string;
    const insured = { dob, address: { second_line: null } };
    expect(insurance).toMatchObject({ relationship: 'Self', insured });
  });

  test('Order, user and lab report parsing job', async () => {
    const bench = await Bench.start();
    const { json } = await bench.order();
    expect(json['order']).toMatchObject({ user_id: bench.user(), interpretation: null });
    const user = await bench.get(`/v2/user/${bench.user()}`);
    expect(user.json).toMatchObject({ user_id: bench.user(), client_user_id: 'made-up-client-0' });
    const { json: job } = await bench.upload();
    expect(job).toMatchObject({ id: UUID, status: 'upload_pending', data: null });
    bench.clock.advance(30_000);
    const done = await bench.get(`/lab_report/v1/parser/job/${String(job['id'])}`);
    const { results } = done.json['data'] as { results: object[] };
    const ranges = { min_reference_range: NUMBER, max_reference_range: NUMBER };
    expect(results[0]).toMatchObject({ value: TEXT, ...ranges, interpretation: 'normal' });
  });
});
