import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { expect, test, vi } from 'vitest';
import { pseudonymise } from '../../src/cli/fixture/pseudonymise.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

vi.setConfig({ testTimeout: 60_000 });

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
    collected: {
      calendar_date: '2026-02-11',
      start: '2026-02-11T08:15:30.123456+01:00',
      end: '2026-02-11 08:45',
    },
    results: [
      { name: 'Glucose', unit: 'mg/dL', value: 104, text: '104.5', flag: true },
      { name: 'Glucose', unit: 'mg/dL', value: null, text: '', flag: false },
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

const UUID = /^[0-9a-f-]{36}$/i;
/** Stay, as they stand in the events above. */
const WORDS = new Set([
  'collecting_sample',
  'mg/dL',
  'kcal',
  'labtest.order.updated',
  'daily.data.meal.created',
]);

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
    const made = pseudonymise(ORDER, 'event_type', key);
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
    const { start, end } = data.collected;
    expect(Date.parse(`${end.replace(' ', 'T')}+01:00`) - Date.parse(start.replace(/\.\d+/, ''))).toBe(
      29 * 60_000 + 30_000,
    );
    const meal = pseudonymise(MEAL, 'event_type', key);
    expect(JSON.stringify(meal)).not.toMatch(/pancakes|Birthday|Ana/);
    expect(meal['user_id'], 'the same in another event').toBe(user);
  }
});

test('a fixture of a real event is signed, can be sent, and replaces no file', async () => {
  const cwd = await temporaryFolder();
  const config = writeConfig(cwd);
  const receiver = await ReceiverProcess.start(config, { cwd });
  expect(
    (await postSigned(receiver.url, Buffer.from(JSON.stringify(ORDER)), { id: 'msg_real' })).status,
  ).toBe(202);
  const run = (...args: string[]) => millraceProcess([...args, '--config', config], { cwd });
  const made = await run('fixture', 'msg_real', '--pseudonymise', '--out', 'order.json');
  expect(made.code, made.stderr).toBe(0);
  const text = readFileSync(join(cwd, 'order.json'), 'utf8');
  expect(text).not.toMatch(/msg_real|Lindqvist|Tübingen|beef/);
  const { secret, headers, body } = JSON.parse(text) as {
    secret: string;
    headers: Record<string, string>;
    body: string;
  };
  expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
  const sent = await run('send', '--fixture', 'order.json');
  expect([sent.code, sent.stdout], sent.stderr).toEqual([0, expect.stringContaining('"status":"accepted"')]);

  const quick = (...args: string[]) => millrace(['fixture', '--config', config, ...args], { cwd });
  expect((await quick('msg_real')).stderr).toContain('add --pseudonymise');
  expect(await quick('msg_none', '--pseudonymise')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no event msg_none'),
  });
  expect(await quick('msg_real', '--pseudonymise', '--out', join(cwd, 'order.json'))).toMatchObject({
    code: 1,
  });
  expect(readFileSync(join(cwd, 'order.json'), 'utf8')).toBe(text);
  const audit = await millrace(['audit', 'list', '--config', config]);
  expect(audit.stdout).toMatch(/owner +show +events +msg_real/);
  await receiver.kill('SIGTERM');
  const archived = await quick('msg_real', '--pseudonymise', '--archive', join(cwd, 'archive'));
  expect([archived.code, archived.stdout.includes('labtest.order.updated')], archived.stderr).toEqual([
    0,
    true,
  ]);
  expect(existsSync(join(cwd, 'order.json.tmp'))).toBe(false);
  expect((await millrace(['send', '--fixture', config, '--config', config])).stderr).toContain(
    'is no fixture',
  );
});
