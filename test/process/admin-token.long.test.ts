import { existsSync, readFileSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Place } from '../support/place.ts';

const statusOf = async (url: string, headers: Record<string, string> = {}): Promise<number> =>
  (await fetch(url, { headers })).status;

test('from the first start the admin API asks for a token that only its user can read', async () => {
  const place = await Place.make();
  const owner = place.at('journal', 'owner.json');
  const token = (): string => (JSON.parse(readFileSync(owner, 'utf8')) as { token: string }).token;
  const receiver = await place.startProcess();
  expect((statSync(owner).mode & 0o777).toString(8)).toBe('600');
  const first = token();
  expect(first).toMatch(/^[\w-]{43}$/);
  for (const path of ['/api/status', '/api/events', '/api/quarantine', '/api/console', '/api/erasures'])
    expect([path, await statusOf(receiver.adminUrl + path)]).toEqual([path, 401]);
  for (const path of ['/livez', '/readyz', '/metrics', '/console/'])
    expect([path, await statusOf(receiver.adminUrl + path)]).toEqual([path, 200]);
  const headers = { authorization: `Bearer ${first}` };
  expect(await statusOf(`${receiver.adminUrl}/api/status`, headers)).toBe(200);
  expect(receiver.stderr + receiver.stdout).not.toContain(first);

  // A token of a receiver that has died opens no other.
  await receiver.kill('SIGKILL');
  const next = await place.startProcess();
  expect(token()).not.toBe(first);
  expect(await statusOf(`${next.adminUrl}/api/status`, headers)).toBe(401);
  await next.stop();
  expect(existsSync(owner)).toBe(false);
});

test.each([
  ['generated', {}],
  ['configured', { token: 'made-up-token-of-the-config' }],
])(
  'commands find the way into a running receiver without an option, by a token that is %s',
  async (_, admin) => {
    const place = await Place.make({ admin });
    const receiver = await place.startProcess();
    await receiver.send(1);
    await receiver.send([
      { id: 'msg_invalid', body: Buffer.from('{"event_type":"daily.data.meal.created"}') },
    ]);
    for (const [args, said] of [
      [['status', '--json'], `"pid":${receiver.pid}`],
      [['quarantine', 'list'], 'msg_invalid'],
      [['quarantine', 'show', '1'], 'event_type'],
      [['dead-letters', 'list'], ''],
      [['erase', '--list'], ''],
      [['reconcile'], ''],
      [['replay', 'journal', '--to', 'archive', '--state', place.at('state')], ''],
      [['console', '--json'], '"valid_seconds":300'],
    ] as const)
      expect(await place.ok(...args)).toContain(said);
  },
);
