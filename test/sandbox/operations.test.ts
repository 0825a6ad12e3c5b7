import { expect, test } from 'vitest';
import { MINUTE } from '../support/manual-clock.ts';
import { misfits } from './shapes.ts';
import { Bench } from './support.ts';

// Required members, from the description of a client that refuses answers without them.
const NAMED = '{ name: text, slug: text, logo: text }';
const USER = `{ user_id: text, team_id: text, client_user_id: text, created_on: timestamp,
  connected_sources: [{ provider: ${NAMED}, created_on: timestamp, source: ${NAMED} }] }`;
const SOURCE =
  '{ provider: text, type~: text, app_id~: text?, device_id~: text?, name~: text, slug~: text, logo~: text }';
const DATED = `id: text, user_id: text, source: ${SOURCE}, created_at: timestamp, updated_at: timestamp`;
const BESIDE = 'source_provider: text, source_type: text';
const LAB_TEST = `{ id: text, slug: text, name: text, sample_type: text, method: text, price: number, is_active: bool,
  status: text, lab: { id: number, slug: text, name: text, first_line_address: text, city: text, zipcode: text,
  collection_methods: [text], sample_types: [text] },
  markers: [{ id: number, name: text, slug: text, aoe: { questions: [any] } }] }`;
const MARKERS = `{ markers: [{ id: number, name: text, slug: text, expected_results: [{ id: number, name: text, slug: text,
  required: bool, loinc: { id: number, name: text, slug: text, code: text } }] }], total: number, page: number,
  size: number }`;
const EVENT = '{ id: number, created_at: timestamp, status: text, status_detail~: text? }';
const ORDER = `{ user_id: text, id: text, team_id: text, patient_details: { dob: timestamp, gender: text },
  patient_address: { first_line: text, city: text, state: text, zip: text, country: text }, lab_test: ${LAB_TEST},
  details: { type: text, data: { id: text, created_at: timestamp, updated_at: timestamp } }, created_at: timestamp,
  updated_at: timestamp, events: [${EVENT}], last_event: ${EVENT}, status: text, has_abn: bool,
  physician: { first_name: text, last_name: text, npi: text },
  shipping_details: { receiver_name: text, first_line: text, city: text, state: text, zip: text, country: text,
  phone_number: text }, order_transaction: { id: text, status: text, orders: [{ id: text, created_at: timestamp,
  updated_at: timestamp }] } }`;
const PLACED = `{ order: ${ORDER}, status: text, message: text }`;
const ORDERS = `{ orders: [${ORDER}], total: number, page: number, size: number }`;
const ADDRESS = '{ first_line: text, country: text, zip: text, zip_code: text, city: text, state: text }';
const SLOTS = `{ slots: [{ date: text, slots: [{ booking_key: text, start: timestamp, end: timestamp, price: number,
  is_priority: bool, num_appointments_available: number }] }], timezone: text }`;
const PULL = `{ status: text, range_start: timestamp, range_end: timestamp, timeline: { scheduled_at: timestamp,
  started_at: timestamp, ended_at: timestamp? }, days_with_data: number, release: text, trace_id: text }`;
const JOB = '{ id: text, status: text, data: any, needs_human_review: bool, is_reviewed: bool }';
const SAMPLE = 'id: number, timezone_offset: number, unit: text, timestamp: timestamp';
const RANGE = 'start_date=2026-01-01&end_date=2026-01-07';

/** With `{order}`, the first order; ids in the answer under the names that are asked for. */
type Operation = [request: string, shape: string, body?: object];

const OPERATIONS: Operation[] = [
  ['GET /v2/user', `{ users: [${USER}], total: number, offset: number, limit: number }`],
  ['POST /v2/user', USER, { client_user_id: 'another' }],
  ['GET /v2/user/{user}', USER],
  ['GET /v2/user/resolve/made-up-client-0', USER],
  [
    'GET /v2/user/providers/{user}',
    `{ providers: [{ name: text, slug: text, logo: text, created_on: timestamp,
    status: text, resource_availability: map of { status: text } }] }`,
  ],
  ['DELETE /v2/user/{user5}', '{ success: bool }'],
  [
    'GET /v2/providers',
    '[{ name: text, slug: text, description: text, logo: text, supported_resources: [text] }]',
  ],
  [
    'GET /v2/team/{team}',
    '{ id: text, org_id: text, name: text, delegated_flow: text, testkits_texts_enabled: bool }',
  ],
  [
    'GET /v2/user/{user}/insurance/latest',
    `{ member_id: text, payor_code: text, relationship: text, insured: {
    first_name: text, last_name: text, gender: text, address: ${ADDRESS}, dob: text, email: text, phone_number: text },
    company: { name: text, address: ${ADDRESS} } }`,
  ],
  ['GET /v3/lab_tests', `[${LAB_TEST}]`],
  ['GET /v3/lab_tests/{test1}', LAB_TEST],
  ['GET /v3/lab_tests/markers?size=2', MARKERS],
  ['POST /v3/lab_tests/list_order_set_markers', MARKERS, { lab_test_ids: ['{test}'] }],
  [
    'GET /v3/lab_test/lab_account',
    `{ data: [{ id: text, lab: text, status: text, delegated_flow: text,
    provider_account_id: text, allowed_billing: map of [text], team_id_allowlist: [text] }] }`,
  ],
  [
    'GET /v3/order/area/info?zip_code=12345',
    `{ zip_code: text, phlebotomy: { is_served: bool, providers: [{ name: text,
    tier: [text], service_types: [text] }] }, central_labs: map of { patient_service_centers: { within_radius: number,
    appointment_with_service: bool, radius: text, capabilities: [text] }, supported_bill_types: [text], lab_id: number } }`,
  ],
  [
    'GET /v3/order/psc/info?zip_code=12345&lab_id=2&radius=100',
    `{ lab_id: number, slug: text, patient_service_centers: [{
    metadata: { name: text, state: text, city: text, zip_code: text, first_line: text }, distance: number, site_code: text,
    supported_bill_types: [text], location: { lng: number, lat: number }, capabilities: [text] }] }`,
  ],
  ['POST /v3/order/phlebotomy/appointment/availability?start_date=2026-02-01', SLOTS],
  ['POST /v3/order/psc/appointment/availability?start_date=2026-02-01', SLOTS],
  ['POST /v3/order', PLACED, { user_id: '{user}', lab_test_id: '{test}' }],
  ['POST /v3/order/create', PLACED, { user_id: '{user}', lab_test_id: '{test}' }],
  ['POST /v3/order/import', PLACED, { user_id: '{user}', lab_test_id: '{test}' }],
  ['GET /orders', ORDERS],
  ['GET /v3/orders?user_id={user1}&status=received', ORDERS],
  ['GET /v3/order/{order}', ORDER],
  ['POST /v3/order/{order}/cancel', PLACED],
  [
    'GET /v2/link/bulk_op',
    `{ data: [{ type: text, status: text, provider: text, pending: number, processed: number,
    started_at: timestamp, ended_at: timestamp? }], next_cursor: text? }`,
  ],
  [
    'GET /v2/introspect/historical_pull',
    `{ data: [{ user_id: text, provider: map of { pulled: map of ${PULL},
    not_pulled: [text] } }], next: text?, next_cursor: text? }`,
  ],
  [
    `GET /v2/summary/meal/{user}?${RANGE}`,
    `{ meals: [{ ${DATED}, priority_id: number, source_id: number,
    provider_id: text, timestamp: timestamp, calendar_date: text, name: text, data: map of { energy: any } }] }`,
  ],
  [
    `GET /v2/summary/activity/{user}?${RANGE}`,
    `{ activity: [{ ${DATED}, date: timestamp, calendar_date: text }] }`,
  ],
  [
    `GET /v2/summary/sleep/{user}?${RANGE}`,
    `{ sleep: [{ ${DATED}, date: timestamp, calendar_date: text,
    bedtime_start: timestamp, bedtime_stop: timestamp, type: text, duration: number, total: number, awake: number,
    light: number, rem: number, deep: number }] }`,
  ],
  [
    `GET /v2/summary/workouts/{user}?${RANGE}`,
    `{ workouts: [{ ${DATED}, calendar_date: text, time_start: timestamp,
    time_end: timestamp, sport: { id: number, name: text, slug: text }, provider_id: text }] }`,
  ],
  [`GET /v2/summary/body/{user}?${RANGE}`, `{ body: [{ ${DATED}, date: timestamp, calendar_date: text }] }`],
  ['GET /v2/summary/profile/{user}', `{ ${DATED}, birth_date: text }`],
  [
    `GET /v2/summary/electrocardiogram/{user}?${RANGE}`,
    `{ electrocardiogram: [{ ${DATED}, ${BESIDE},
    session_start: timestamp, session_end: timestamp, voltage_sample_count: number }] }`,
  ],
  [
    `GET /v2/summary/sleep_cycle/{user}?${RANGE}`,
    `{ sleep_cycle: [{ ${DATED}, ${BESIDE}, sleep_id: text,
    session_start: timestamp, session_end: timestamp, stage_start_offset_second: [number],
    stage_end_offset_second: [number], stage_type: [number] }] }`,
  ],
  [
    `GET /v2/summary/menstrual_cycle/{user}?${RANGE}`,
    `{ menstrual_cycle: [{ ${DATED}, ${BESIDE}, period_start: text,
    menstrual_flow: [{ date: text, flow: text }] }] }`,
  ],
  [
    `GET /v2/timeseries/{user}/heartrate/grouped?${RANGE}`,
    `{ groups: map of [{ source: ${SOURCE},
    data: [{ ${SAMPLE}, value: number }] }], next: text?, next_cursor: text? }`,
  ],
  [
    `GET /v2/timeseries/{user}/blood_pressure/grouped?${RANGE}`,
    `{ groups: map of [{ source: ${SOURCE},
    data: [{ ${SAMPLE}, systolic: number, diastolic: number }] }], next: text?, next_cursor: text? }`,
  ],
];

async function busyBench(): Promise<{ bench: Bench; order: string }> {
  const bench = await Bench.start();
  const { json } = await bench.order({ user_id: '{user1}' });
  await bench.trigger('made_up', 8);
  await bench.upload();
  bench.clock.advance(MINUTE);
  return { bench, order: (json['order'] as { id: string }).id };
}

test.each<Operation>(OPERATIONS)('%s answers with all members', async (request, shape, body) => {
  const { bench, order } = await busyBench();
  const { status, json } = await bench.ask(request.replace('{order}', order), body);
  expect([status, misfits(shape, json)]).toEqual([200, []]);
  // None of its lists is empty.
  expect(JSON.stringify(json)).not.toMatch(/^\{"\w+":(\[\]|\{\})/);
});

test('a parsing job answers with all members', async () => {
  const { bench } = await busyBench();
  const { json } = await bench.upload();
  expect(misfits(JOB, json)).toEqual([]);
});

test('what is asked for comes back: ids, filters, a cancelled order', async () => {
  const { bench, order } = await busyBench();
  const idsOf = async (query: string): Promise<string[]> => {
    const { json } = await bench.get(`/v3/orders?${query}`);
    return (json['orders'] as { id: string }[]).map(({ id }) => id);
  };
  await bench.order();
  expect(await idsOf('user_id={user1}')).toEqual([order]);
  expect(await idsOf(`order_ids=${order}`)).toEqual([order]);
  expect((await bench.get(`/v3/order/${order}`)).json['id']).toBe(order);
  const cancelled = await bench.post(`/v3/order/${order}/cancel`);
  const status = { status: 'cancelled.testkit.cancelled', order_transaction: { status: 'cancelled' } };
  expect(cancelled.json).toMatchObject({ order: { id: order, ...status } });
  bench.clock.advance(90 * 24 * 60 * MINUTE);
  expect((await bench.get(`/v3/order/${order}`)).json).toMatchObject(status);
  expect((await bench.post(`/v3/order/${order}/cancel`)).status).toBe(400);
  expect(await idsOf('status=cancelled')).toEqual([order]);
  expect((await idsOf('status=completed')).length).toBe(1);
  expect((await bench.get('/v2/user/resolve/made-up-client-3')).json['user_id']).toBe(bench.user(3));
  expect((await bench.get('/v3/lab_tests/{test2}')).json['id']).toBe(bench.state.labs.tests[2]!.id);
  for (const path of [
    '/v2/user/resolve/unknown',
    `/v3/order/${bench.user()}`,
    `/v3/lab_tests/${bench.user()}`,
  ])
    expect([path, (await bench.get(path)).status]).toEqual([path, 404]);
});
