import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Audit } from '../../src/observe/admin/audit.ts';
import { Place, printing } from '../support/place.ts';

const USER = '5f0c1d2e-0000-4000-8000-00000000beef';
const TOKEN = 'made-up-token-of-the-config';
const BODY = Buffer.from(`{"event_type":"daily.data.meal.created","user_id":"${USER}","made":"up-body"}`);

interface Entry {
  readonly who: string;
  readonly action: string;
  readonly what: string;
  readonly ids: readonly string[];
}

/** What was noted; ids of events are asked for one by one, for the log has hashes of them only. */
async function audit(place: Place, events: readonly string[]): Promise<string[]> {
  const hashes = new Map<string, string>();
  for (const id of events) {
    const entries = (await place.documents('audit', 'list', '--id', id)) as Entry[];
    const lists = entries.map(({ ids }) => new Set(ids));
    const common = lists.reduce((one, other) => one.intersection(other), lists[0] ?? new Set());
    const fresh = [...common].filter((hash) => !hashes.has(hash));
    expect(fresh).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
    for (const hash of fresh) hashes.set(hash, id);
  }
  const all = (await place.documents('audit', 'list')) as Entry[];
  return all.map(({ who, action, what, ids }) =>
    [who, action, what, ...ids.map((id) => hashes.get(id) ?? id)].join(' '),
  );
}

test('who has seen which body, and dropped, retried or erased what, is noted; no body and no user', async () => {
  const place = await Place.make({ admin: { token: TOKEN }, console: { payloads: true } });
  const receiver = await place.start();
  for (const id of ['msg_1', 'msg_2', 'msg_3', 'msg_4'])
    expect((await receiver.post(BODY, { id })).json['status']).toBe('quarantined');
  const ask = async (headers: Record<string, string>, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${receiver.adminUrl}/api${path}`, {
      headers: { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    expect([path, answer.status]).toEqual([path, 200]);
    return answer.json();
  };
  const run = (...args: string[]) => place.ok(...args);
  // Lists show no body, and are not noted.
  await run('quarantine', 'list');
  await ask({ authorization: `Bearer ${TOKEN}` }, '/quarantine');
  await run('quarantine', 'show', '2');
  await ask({ authorization: `Bearer ${TOKEN}` }, '/quarantine?bodies=true&keys=1,3');
  const { code } = (await ask(receiver.authorization, '/console/links', {})) as { code: string };
  const { token } = (await ask({}, '/console/sessions', { code })) as { token: string };
  await ask({ authorization: `Bearer ${token}` }, '/quarantine/drop', { keys: [4] });
  await run('quarantine', 'retry', '1');
  await run('erase', USER, '--now');
  await receiver.stop();
  // No receiver runs: the command has the journal to itself.
  const next = await place.start();
  await next.send([{ id: 'msg_5', body: Buffer.from('{"made":"up-body"}') }]);
  await next.stop();
  await run('quarantine', 'show', '5');
  await run('quarantine', 'drop', '--all');

  place.write({ sinks: { other: { type: 'files', path: place.at('other') } } });
  await run('sink', 'drop', 'archive');
  place.write({});

  const noted = await audit(place, ['msg_2', 'msg_1', 'msg_3', 'msg_4', 'msg_5']);
  const erasure = /^owner request erasures ([0-9a-f]{16})$/.exec(noted[4] ?? '')?.[1];
  expect(noted).toEqual([
    'owner show quarantine msg_2',
    'config show quarantine msg_1 msg_3',
    'console drop quarantine msg_4',
    'owner retry quarantine msg_1',
    `owner request erasures ${erasure}`,
    `owner erase erasures ${erasure}`,
    'command show quarantine msg_5',
    'command drop quarantine msg_5',
    'command drop sinks archive',
  ]);
  const file = place.at('journal', 'audit.jsonl');
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  const text = readFileSync(file, 'utf8');
  for (const secret of [USER, 'up-body', TOKEN, token, 'msg_']) expect(text).not.toContain(secret);

  await run('audit', 'verify');
  writeFileSync(file, text.replace('"config","action":"show"', '"owner","action":"show"'));
  const verify = (...args: string[]) => place.run('audit', 'verify', ...args);
  const altered = expect.stringContaining('audit.jsonl:3: line 2') as unknown;
  expect(await verify()).toMatchObject({ code: 4, stdout: altered });
  writeFileSync(file, text.split('\n').toSpliced(3, 1).join('\n'));
  const removed = expect.stringContaining('line 5 follows line 3') as unknown;
  expect(await verify('--json')).toMatchObject({ code: 4, stdout: removed });
});

test('what cannot be noted is not shown and not dropped', async () => {
  const place = await Place.make();
  const receiver = await place.start();
  await receiver.post(BODY, { id: 'msg_1' });
  // A head that cannot be read stands for a disk that takes no more.
  writeFileSync(place.at('journal', 'audit.head'), 'no JSON');
  for (const verb of ['show', 'drop'])
    expect(await place.run('quarantine', verb, '1')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('Audit log cannot be written'),
    });
  expect((await receiver.status()).journal.quarantined).toBe(1);
});

test('an answer is a page of bounded bytes, whatever lies in quarantine, and no event is left out', async () => {
  const place = await Place.make();
  const receiver = await place.start();
  const event = { event_type: 'daily.data.meal.created', made: 'up'.repeat(1.5e6) };
  const large = Buffer.from(JSON.stringify(event));
  const ids = Array.from({ length: 7 }, (_, n) => `msg_${n}`);
  await receiver.send(ids.map((id) => ({ id, body: large })));

  const found: string[] = [];
  for (let after: number | undefined = 0; after !== undefined;) {
    const answer = await receiver.ask(`/api/quarantine?bodies=true&limit=100&after=${after}`);
    const text = await answer.text();
    // 8 MiB of bodies, as base64.
    expect(text.length).toBeLessThan(12e6);
    const page = JSON.parse(text) as { key: number; id: string; bytes: number; body_base64: string }[];
    for (const { bytes, body_base64: body } of page) {
      expect(bytes).toBe(large.length);
      expect(Buffer.from(body, 'base64').equals(large)).toBe(true);
    }
    found.push(...page.map(({ id }) => id));
    after = page.at(-1)?.key;
  }
  expect(found).toEqual(ids);

  // Without bodies nothing stands in the way of one page, and the sizes are the real ones.
  expect(await place.documents('quarantine', 'list')).toMatchObject(ids.map(() => ({ bytes: large.length })));
  expect(await place.ok('quarantine', 'drop', '--all')).toBe('dropped 7\n');
  expect((await receiver.status()).journal.quarantined).toBe(0);
});

test('a log that is gone while its key is there is a difference, exit 4', async () => {
  const place = await Place.make();
  await place.ok('audit', 'verify');
  const entry = { who: 'command', action: 'drop', what: 'events', ids: ['msg_made_up'] } as const;
  await new Audit(place.at('journal')).note(entry);
  await place.ok('audit', 'verify');
  for (const name of ['audit.jsonl', 'audit.head']) rmSync(place.at('journal', name));
  expect(await place.run('audit', 'verify')).toMatchObject(printing(4, 'difference audit.jsonl is missing'));
});

test('a key that is lost beside its log is an error with its name, and no new one is made', async () => {
  const place = await Place.make();
  const folder = place.at('journal');
  const ids = ['msg_made_up'];
  await place.ok('audit', 'list', '--id', 'msg_made_up');
  await new Audit(folder).note({ who: 'command', action: 'drop', what: 'sinks', ids });
  expect(await place.documents('audit', 'list', '--id', 'msg_made_up')).toEqual([]);
  const event = { who: 'command', action: 'drop', what: 'events', ids } as const;
  await new Audit(folder).note(event);
  const key = place.at('journal', 'audit.key');
  const kept = readFileSync(key);
  const named = expect.stringContaining(`${key} is missing or damaged`) as unknown;
  for (const lose of [() => rmSync(key), () => writeFileSync(key, '')]) {
    lose();
    expect(await place.run('audit', 'list', '--id', 'msg_made_up')).toMatchObject({ code: 1, stderr: named });
    await expect(new Audit(folder).note(event)).rejects.toMatchObject({ code: 'audit_unwritable' });
  }
  writeFileSync(key, kept);
  expect(await place.documents('audit', 'list', '--id', 'msg_made_up')).toHaveLength(1);
});
