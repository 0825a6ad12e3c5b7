import { existsSync, readFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { pseudonymise } from '../../src/privacy/pseudonymise.ts';
import { millraceProcess } from '../support/millrace.ts';
import { Place, printing, saying } from '../support/place.ts';

const USER = '5f0c1d2e-0000-4000-8000-00000000beef';
/** Made up, and as telling as a real one. */
const ORDER = {
  event_type: 'labtest.order.updated',
  team_id: '6b0e9a52-1111-4000-8000-000000000001',
  user_id: USER,
  client_user_id: 'patient/Ana-Li.78',
  data: {
    id: '0a1b2c3d-2222-4000-8000-0000000000cc',
    user_id: USER.toUpperCase(),
    note: `Call Ana (${USER}) before 10:30, tel. +49 30 5550123`,
    status: 'collecting_sample',
    patient_details: {
      first_name: 'Ana',
      last_name: 'Lindqvist',
      dob: '1978-03-09T00:00:00+00:00',
      email: 'ana.li@example.org',
    },
    patient_address: { first_line: 'Ahornallee 12b', city: 'Tübingen', zip: '72070', country: 'DE' },
    location: { lng: 9.0576, lat: 48.5216 },
    lab: { id: 48_215, price: 59.5, npi: 1_234_567_893 },
    shipment: {
      calendar_date: '2026-02-11',
      start: '2026-02-11T08:15:30.123456+01:00',
      end: '2026-02-11 08:45',
    },
    results: [
      { name: 'Glucose', unit: 'mg/dL', value: 104, description: '104.5', is_reviewed: true },
      { name: 'Glucose', unit: 'mg/dL', value: null, description: '', is_reviewed: false },
    ],
  },
};
const MEAL = {
  event_type: 'daily.data.meal.created',
  user_id: USER,
  data: {
    name: 'Birthday at Ana’s',
    data: { 'Grandma’s pancakes': { energy: { unit: 'kcal', value: 320 } }, pancakes: {} },
  },
};

const ENVELOPE = { type: 'event_type', team: 'team_id', user: 'user_id', clientUser: 'client_user_id' };

const UUID = /^[0-9a-f-]{36}$/i;
/** Stay, as they stand in the events above. */
const WORDS = new Set(['collecting_sample', 'mg/dL', 'kcal', ORDER.event_type, MEAL.event_type]);

function* leaves(value: unknown, path = ''): Generator<[string, unknown]> {
  if (typeof value !== 'object' || value === null) yield [path, value];
  else for (const [name, each] of Object.entries(value)) yield* leaves(each, `${path}/${name}`);
}

/** Kind of a value, as a consumer of the event would check it. */
function kind(value: unknown): string {
  if (typeof value !== 'string') return value === null ? 'null' : typeof value;
  if (UUID.test(value)) return 'uuid';
  if (/^\d{4}-\d\d-\d\d/.test(value))
    return `time ${value.replaceAll(/\d/g, '0')} ${Number.isNaN(Date.parse(value))}`;
  return WORDS.has(value) ? value : `text of ${value.length}`;
}

/** No text, no id and no place of `original` stands anywhere in `made`, whatever the case. */
function expectNothingLeft(original: object, made: string): void {
  const text = made.toLowerCase();
  const telling = [...leaves(original)].flatMap(([path, value]) => {
    if (typeof value === 'string') return value.length >= 4 && !WORDS.has(value) ? [value] : [];
    return /\/(id|npi|lat|lng)$/.test(path) ? [String(value)] : [];
  });
  const parts = ['Ana', 'Lindqvist', '5550123', 'pancakes', 'Birthday', 'beef', '2026-02-11', '1978'];
  for (const each of [...telling, ...parts]) expect(text, each).not.toContain(each.toLowerCase());
}

test('nothing of the original is left, and its shape is', () => {
  for (let n = 0; n < 200; n += 1) {
    const key = Buffer.from(`made-up key ${n}`);
    const made = pseudonymise(ORDER, ENVELOPE, key);
    // `ana` and `1978` are so short that chance has them in other words.
    if (n < 3)
      expectNothingLeft(
        { ...ORDER },
        JSON.stringify(made).replaceAll(/(?<=[a-z])ana|ana(?=[a-z])|1978/gi, ''),
      );
    expect(Array.from(leaves(made), ([path, value]) => [path, kind(value)])).toEqual(
      Array.from(leaves(ORDER), ([path, value]) => [path, kind(value)]),
    );
    const { user_id: user, data } = made as typeof ORDER;
    expect(data.user_id.toLowerCase()).toBe(user);
    expect(data.results.map(({ name }) => name)).toEqual(Array(2).fill(data.results[0]?.name));
    expect(data.lab.price).toBe(59.5);
    const { start, end } = data.shipment;
    expect(Date.parse(`${end.replace(' ', 'T')}+01:00`) - Date.parse(start.replace(/\.\d+/, ''))).toBe(
      29 * 60_000 + 30_000,
    );
    const meal = pseudonymise(MEAL, ENVELOPE, key);
    expect(JSON.stringify(meal)).not.toMatch(/pancakes|Birthday|Ana/);
    expect(meal['user_id'], 'the same in another event').toBe(user);
  }
});

const flat = (object: object): number[] => Object.values(object).flat() as number[];

test('a number is another one of the same shape, unless it is a measure', () => {
  const telling = {
    phone: 436641234567, ssn: 123456789, mrn: 8837465, patient: 8837465, postcode: 1060, birthday: 446860800,
    coordinates: [16.34412, 48.19684], phone_number: 431234567, medicare_number: 29871234, user: 77123, member_no: 5512,
    case_number: 90817, order_number: 7781, zip_code: 72070, house_number: 127, birth_ms: 446860800123,
    birth_compact: 19840229, birth_year: 1984, year_of_birth: 1984, date: 1700000000, timestamp: 1700000000123,
    start: 1700000060, big: Number('12345678901234567890'), huge: 1.2345e25, negative: -8837465, value: 436641234567, rank: 1234.5,
  }; // prettier-ignore
  const measures = {
    value: 104.25,
    steps: 9123,
    min_bpm: 48,
    calories_total: 2210.5,
    hr_zones: [0, 12, 900],
  };
  for (let n = 0; n < 100; n += 1) {
    const key = Buffer.from(`made-up key ${n}`);
    const of = (data: object): Record<string, number>[] =>
      pseudonymise({ event_type: 'daily.data.x.created', data: [data] }, ENVELOPE, key)['data'] as never;
    expect(of(measures)).toEqual([measures]);
    const [made] = of(telling);
    const [before, after] = [flat(telling), flat(made ?? {})];
    for (const [at, value] of before.entries()) {
      const other = after[at] ?? 0;
      expect(before, String(value)).not.toContain(other);
      expect(Math.sign(other)).toBe(Math.sign(value));
      // A time can lose a digit, as it moves.
      if (value < 1e8) expect(String(other), String(value)).toHaveLength(String(value).length);
    }
    const [date, timestamp, start] = [made?.['date'] ?? 0, made?.['timestamp'] ?? 0, made?.['start'] ?? 0];
    expect([start - date, timestamp - date * 1000]).toEqual([60, 123]);
    expect(of({ start: '2023-11-14T22:13:20Z' })[0]?.['start']).toBe(
      new Date(date * 1000).toISOString().replace('.000', ''),
    );
  }
});

test('a name that the service does not document is another one', () => {
  const made = pseudonymise(
    {
      event_type: 'daily.data.x.created',
      'zoe@top.example': 'v',
      data: { mueller_zoe: { unit: 'kg' }, a: 1, b: 2, c: 3, source: { provider: 'oura' } },
    },
    ENVELOPE,
    Buffer.from('made-up key'),
  );
  expect(JSON.stringify(made)).not.toMatch(/zoe|mueller|top|example/);
  expect(Object.keys(made)).toHaveLength(3);
  expect(Object.keys(made['data'] as object)).toHaveLength(5);
  expect(made['data']).toMatchObject({ source: { provider: 'oura' } });
  const other = pseudonymise(
    { kind: 'made.up', whose: 'x', who: 'y' },
    { ...ENVELOPE, type: 'kind', user: 'whose' },
    Buffer.from('made-up key'),
  );
  expect(Object.keys(other)).toEqual(['kind', 'whose', expect.not.stringMatching(/^who$/)]);
});

test('a fixture of a real event is signed, can be sent, and replaces no file', async () => {
  const place = await Place.make();
  const { config, folder: cwd } = place;
  const receiver = await place.startProcess({ cwd });
  await receiver.send([{ id: 'msg_real', body: Buffer.from(JSON.stringify(ORDER)) }]);
  const run = (...args: string[]) => millraceProcess([...args, '--config', config], { cwd });
  const order = place.at('order.json');
  const made = await run('fixture', 'msg_real', '--pseudonymise', '--out', 'order.json');
  expect(made.code, made.stderr).toBe(0);
  const text = readFileSync(order, 'utf8');
  expect(text).not.toMatch(/msg_real|Lindqvist|Tübingen|beef/);
  const { secret, headers, body } = JSON.parse(text);
  expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
  expect(await run('send', '--fixture', 'order.json')).toMatchObject(printing(0, '"status":"accepted"'));

  const fixture = (...args: string[]) => place.run('fixture', ...args);
  expect((await fixture('msg_real')).stderr).toContain('add --pseudonymise');
  expect(await fixture('msg_none', '--pseudonymise')).toMatchObject(saying(2, 'no event msg_none'));
  const there = await fixture('msg_real', '--pseudonymise', '--out', order);
  expect(there).toMatchObject(saying(2, 'order.json'));
  expect(readFileSync(order, 'utf8')).toBe(text);
  expect(await place.ok('audit', 'list', '--id', 'msg_real')).toMatch(/owner +show +events +[0-9a-f]{32}/);
  await receiver.stop();
  const archived = await fixture('msg_real', '--pseudonymise', '--archive', place.at('archive'));
  expect(archived).toMatchObject(printing(0, 'labtest.order.updated'));
  expect(existsSync(`${order}.tmp`)).toBe(false);
  expect((await place.run('send', '--fixture', config)).stderr).toContain('is no fixture');
});
