import { startSandbox } from '../../src/sandbox/start.ts';
import { ServiceClient } from '../../src/history/service/client.ts';
import { mealsOf } from '../history/service/support.ts';
import { DAY, HOUR, ManualClock, SECOND } from '../support/manual-clock.ts';

export type Json = Readonly<Record<string, unknown>>;

/** What an operation answered at one time: the documents in it, and the table that they are for. */
export interface Reading {
  /** As the sandbox lists it. */
  readonly operation: string;
  readonly table: string;
  readonly documents: readonly Json[];
  /** ISO 8601. */
  readonly at: string;
  /** What only the caller knows. */
  readonly given: Readonly<Record<string, string>>;
}

/** What answers have beyond the specification: it lands in `extra`. */
export const BEYOND = ['insurance.insured', 'marker_expected_results.required', 'user_connections.provider'];

/** By resource: its table. */
const SUMMARIES: Readonly<Record<string, string>> = {
  activity: 'activity',
  sleep: 'sleep',
  workouts: 'workouts',
  body: 'body',
  electrocardiogram: 'electrocardiograms',
  sleep_cycle: 'sleep_cycles',
  menstrual_cycle: 'menstrual_cycles',
  profile: 'profiles',
};
const SERIES =
  'steps heartrate blood_pressure note insulin_injection workout_duration body_temperature'.split(' ');
const USERS = 12;
const ORDERS = 22;
const RANGE = { start: '2026-01-01' };
/** Between one reading of everything and the next. */
const PAUSES = [30 * SECOND, 2 * HOUR, 3 * DAY, 6 * DAY];

/** Reads everything that the client can read from a sandbox, again and again while its states change. */
export async function readService(): Promise<Reading[]> {
  const clock = new ManualClock();
  const sandbox = await startSandbox({
    clock,
    users: USERS,
    days: 12,
    providers: ['made_up'],
    features: { partialResults: true },
    faults: { failingUsers: 1, retryingUsers: 1 },
  });
  const client = new ServiceClient({ baseUrl: sandbox.url, apiKey: sandbox.apiKey });
  const readings: Reading[] = [];
  const note = (operation: string, table: string, documents: unknown, given: Reading['given'] = {}): void => {
    const at = new Date(clock.now()).toISOString();
    readings.push({ operation, table, documents: documents as Json[], at, given });
  };
  /** What no command of ours asks for. */
  const post = async (path: string, body: object): Promise<Json> => {
    const isForm = body instanceof FormData;
    const headers = { 'x-service-api-key': sandbox.apiKey };
    const answer = await fetch(`${sandbox.url}${path}`, {
      method: 'POST',
      headers: isForm ? headers : { ...headers, 'content-type': 'application/json' },
      body: isForm ? body : JSON.stringify(body),
    });
    return (await answer.json()) as Json;
  };
  try {
    const { labs, users } = sandbox.state;
    const ids = users.list(sandbox.teamId).map(({ id }) => id);
    note('post /v2/user', 'users', [await post('/v2/user', { client_user_id: 'made-up-newcomer' })]);
    await client.bulk.trigger({ userIds: ids, provider: 'made_up' });
    await client.bulk.trigger({ userIds: ids.slice(0, 3), provider: 'made_up_slow' });
    const placed: string[] = [];
    for (let n = 0; n < ORDERS; n += 1) {
      const lab_test_id = labs.tests[n % labs.tests.length]!.id;
      const order = { user_id: ids[n % USERS]!, clinical_notes: 'Fasting.', lab_test_id };
      const path = `/v3/order/${n % 5 === 4 ? 'import' : 'create'}`;
      note(`post ${path}`, 'orders', [(await post(path, order))['order']]);
      placed.push(lab_test_id);
    }
    const jobs: string[] = [];
    for (const [n, file] of ['%PDF-1.7 a made-up report', '%PDF-', '%PDF-1.7 made up for people'].entries()) {
      const form = new FormData();
      form.set('file', new Blob([file]), 'report');
      form.set('user_id', ids[n]!);
      form.set('needs_human_review', String(n === 2));
      const job = await post('/lab_report/v1/parser/job', form);
      note('post /lab_report/v1/parser/job', 'parsing_jobs', [job]);
      jobs.push(String(job['id']));
    }
    const get = async (path: string): Promise<Json> => {
      const answer = await fetch(sandbox.url + path, { headers: { 'x-service-api-key': sandbox.apiKey } });
      return (await answer.json()) as Json;
    };
    const readHealth = async (): Promise<void> => {
      for (const [resource, table] of Object.entries(SUMMARIES)) {
        const answer = await get(`/v2/summary/${resource}/${ids[1]}?start_date=2026-01-01`);
        const isProfile = resource === 'profile';
        const operation = `get /v2/summary/${isProfile ? resource : ':resource'}/:user_id`;
        note(operation, table, isProfile ? [answer] : answer[resource]);
      }
      for (const resource of SERIES) {
        const { groups } = await get(`/v2/timeseries/${ids[1]}/${resource}/grouped?start_date=2026-01-01`);
        const documents = Object.values(groups as Record<string, object[]>).flat();
        const given = { user_id: ids[1]!, resource };
        note('get /v2/timeseries/:user_id/:resource/grouped', 'timeseries', documents, given);
      }
    };
    await readHealth();
    const readAll = async (round: number): Promise<void> => {
      note('get /v2/summary/meal/:user_id', 'meals', await mealsOf(client, ids[round]!, RANGE));
      note('get /v2/link/bulk_op', 'bulk_ops', (await client.bulk.listOps()).data);
      note('get /v2/introspect/historical_pull', 'historical_pulls', (await client.pulls.status()).data);
      note('get /v2/user', 'users', (await client.users.list({ limit: 500 })).users);
      note('get /v2/user/:user_id', 'users', [await client.users.get(ids[0]!)]);
      for (const id of ids) {
        const found = await client.users.latestInsurance(id).catch(() => null);
        if (found !== null)
          note('get /v2/user/:user_id/insurance/latest', 'insurance', [found], { user_id: id });
      }
      const set = { labTestIds: [placed[0]!] };
      const added = (await client.labs.orderSetMarkers(set, { size: 100 })).markers;
      note('post /v3/lab_tests/list_order_set_markers', 'markers', added);
      note('get /v3/lab_tests/markers', 'markers', (await client.labs.markers({ size: 100 })).markers);
      note('get /v3/lab_tests', 'lab_tests', (await client.labs.tests()).data);
      note('get /v3/lab_test/lab_account', 'lab_accounts', (await client.labs.accounts()).data);
      const areas = await Promise.all(
        ['12345', '10001', '94103'].map((zipCode) =>
          client.labs.areaInfo({ zipCode, radius: round < 3 ? 25 : 50 }),
        ),
      );
      note('get /v3/order/area/info', 'areas', areas);
      note('get /orders', 'orders', (await client.labs.orders({ size: 100 })).orders);
      for (const job of jobs)
        note('get /lab_report/v1/parser/job/:job_id', 'parsing_jobs', [await client.labs.parsingJob(job)]);
    };
    await readAll(0);
    for (const [n, pause] of PAUSES.entries()) {
      clock.advance(pause);
      change(sandbox.state.labs, n);
      sandbox.connect(ids[n]!, 'made_up_7');
      await readAll(n + 1);
    }
    return readings;
  } finally {
    await client.close();
    await sandbox.stop();
  }
}

/** What the service changes by itself, and the sandbox does not: prices, and accounts on their way. */
function change(
  labs: Readonly<Record<'markers' | 'accounts' | 'tests', readonly object[]>>,
  n: number,
): void {
  Object.assign(labs.markers[n]!, { price: `${99 + n}.00` });
  Object.assign(labs.tests[0]!, { usualDays: 4 + n });
  Object.assign(labs.accounts[n % 2]!, { status: n % 2 === 0 ? 'suspended' : 'pending' });
}
