import { describe, expect, test } from 'vitest';
import { Bench, formOf, pdf } from './support.ts';

const UUID = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
) as string;
const DATE_TIME = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?\+00:00$/) as string;
const TEXT = expect.any(String) as string;
const NUMBER = expect.any(Number) as number;

describe('Resources and their fields', () => {
  test('Meal', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get(`/v2/summary/meal/${bench.user()}?start_date=2026-01-01`);
    const meals = json['meals'] as Record<string, unknown>[];
    expect(meals).toHaveLength(30);
    const usual = meals.filter(({ source }) => 'provider' in (source as object));
    expect(usual.length).toBeGreaterThan(20);
    for (const meal of usual) {
      expect(meal).toMatchObject({
        id: UUID,
        user_id: bench.user(),
        name: TEXT,
        timestamp: DATE_TIME,
        created_at: DATE_TIME,
        updated_at: DATE_TIME,
        provider_id: TEXT,
        source_id: NUMBER,
        source_app_id: TEXT,
        priority_id: NUMBER,
        source: { app_id: TEXT, device_id: TEXT, provider: TEXT, type: TEXT },
      });
      for (const food of Object.values(meal['data'] as object)) {
        expect(food).toMatchObject({
          energy: { unit: 'kcal', value: NUMBER },
          macros: { carbs: NUMBER, protein: NUMBER, sugar: NUMBER, fats: { total: NUMBER } },
          micros: { minerals: { sodium: NUMBER } },
        });
      }
    }
    const fats = usual.flatMap((meal) =>
      Object.values(meal['data'] as Record<string, { macros: { fats: object } }>).map(({ macros }) =>
        Object.keys(macros.fats).join(' '),
      ),
    );
    expect(new Set(fats)).toEqual(
      new Set(['total', 'total saturated monounsaturated polyunsaturated omega3 omega6']),
    );
  });

  test('Lab marker', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get('/v3/lab_tests/markers?size=100');
    const markers = json['markers'] as Record<string, unknown>[];
    expect(markers).toHaveLength(100);
    for (const marker of markers) {
      expect(marker).toMatchObject({
        id: NUMBER,
        name: TEXT,
        slug: TEXT,
        description: TEXT,
        lab_id: NUMBER,
        provider_id: TEXT,
        type: 'biomarker',
        price: TEXT,
        expected_results: [
          {
            id: NUMBER,
            name: TEXT,
            slug: TEXT,
            lab_id: NUMBER,
            provider_id: TEXT,
            loinc: { id: NUMBER, code: TEXT },
          },
        ],
      });
    }
    expect(markers.some(({ unit }) => unit === null)).toBe(true);
    expect(markers.some(({ price }) => Number.isNaN(Number(price)))).toBe(true);
  });

  test('Lab account', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get('/v3/lab_test/lab_account');
    for (const account of json['data'] as object[]) {
      expect(account).toMatchObject({
        id: UUID,
        lab: expect.stringMatching(/^made_up_lab_\d$/) as string,
        status: expect.stringMatching(/^(active|pending|suspended)$/) as string,
        delegated_flow: TEXT,
        provider_account_id: TEXT,
        allowed_billing: expect.any(Object) as object,
        team_id_allowlist: [bench.sandbox.teamId],
        org_id: UUID,
        account_name: TEXT,
        business_units: [TEXT],
      });
    }
  });

  test('Area information', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get('/v3/order/area/info?zip_code=12345&radius=100');
    expect(json).toMatchObject({
      zip_code: '12345',
      phlebotomy: {
        is_served: true,
        providers: [
          { name: TEXT, tier: ['appointment-ready'] },
          { name: TEXT, tier: ['appointment-request'] },
        ],
      },
    });
    const labs = Object.values(json['central_labs'] as object);
    expect(labs).toHaveLength(4);
    for (const lab of labs) {
      expect(lab).toMatchObject({ patient_service_centers: { within_radius: NUMBER, radius: '100' } });
    }
    expect(JSON.stringify(labs)).toContain('"stat"');
  });

  test('Insurance (latest of a user)', async () => {
    const bench = await Bench.start();
    const { json } = await bench.get(`/v2/user/${bench.user()}/insurance/latest`);
    expect(json).toMatchObject({
      payor_code: TEXT,
      member_id: TEXT,
      group_id: TEXT,
      relationship: 'Self',
      insured: {
        first_name: TEXT,
        last_name: TEXT,
        email: TEXT,
        phone_number: TEXT,
        gender: TEXT,
        dob: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/) as string,
        address: { first_line: TEXT, second_line: null, zip_code: TEXT, state: TEXT, city: TEXT },
      },
    });
  });

  test('Order and User', async () => {
    const bench = await Bench.start();
    const lab_test_id = bench.sandbox.state.labs.tests[0]!.id;
    const { json } = await bench.post('/v3/order/create', { user_id: bench.user(), lab_test_id });
    expect(json['order']).toMatchObject({ user_id: bench.user(), interpretation: null });
    const user = await bench.get(`/v2/user/${bench.user()}`);
    expect(user.json).toMatchObject({ user_id: bench.user(), client_user_id: 'made-up-client-0' });
  });

  test('Lab report parsing job', async () => {
    const bench = await Bench.start();
    const form = formOf({ file: pdf(), user_id: bench.user() });
    const { json } = await bench.call('POST', '/lab_report/v1/parser/job', form);
    expect(json).toMatchObject({ id: UUID, status: 'upload_pending', data: null });
    bench.clock.advance(30_000);
    const done = await bench.get(`/lab_report/v1/parser/job/${String(json['id'])}`);
    const { results } = done.json['data'] as { results: object[] };
    expect(results[0]).toMatchObject({
      test_name: TEXT,
      value: TEXT,
      units: TEXT,
      min_reference_range: NUMBER,
      max_reference_range: NUMBER,
      interpretation: 'normal',
      loinc_matches: [{ loinc_code: TEXT }],
    });
  });
});
