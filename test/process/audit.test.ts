import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { Audit } from '../../src/admin/audit.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';

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
async function audit(config: string, events: readonly string[]): Promise<string[]> {
  const hashes = new Map<string, string>();
  for (const id of events) {
    const { stdout } = await millrace(['audit', 'list', '--json', '--id', id, '--config', config]);
    const lists = stdout.split('\n').slice(0, -1).map((line) => new Set((JSON.parse(line) as Entry).ids)); // prettier-ignore
    const common = lists.reduce((one, other) => one.intersection(other), lists[0] ?? new Set());
    expect([...common].filter((hash) => !hashes.has(hash))).toEqual([
      expect.stringMatching(/^[0-9a-f]{32}$/),
    ]);
    for (const hash of common) if (!hashes.has(hash)) hashes.set(hash, id);
  }
  const { stdout } = await millrace(['audit', 'list', '--json', '--config', config]);
  const lines = stdout.split('\n').slice(0, -1);
  return lines.map((line) => {
    const { who, action, what, ids } = JSON.parse(line) as Entry;
    return [who, action, what, ...ids.map((id) => hashes.get(id) ?? id)].join(' ');
  });
}

test('who has seen which body, and dropped, retried or erased what, is noted; no body and no user', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, { admin: { token: TOKEN }, console: { payloads: true } });
  const receiver = await Receiver.start(config);
  for (const id of ['msg_1', 'msg_2', 'msg_3', 'msg_4'])
    expect((await postSigned(receiver.url, BODY, { id })).json['status']).toBe('quarantined');
  const ask = async (headers: Record<string, string>, path: string, body?: object): Promise<unknown> => {
    const answer = await request(`${receiver.adminUrl}/api${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect([path, answer.statusCode]).toEqual([path, 200]);
    return answer.body.json();
  };
  const run = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await millrace([...args, '--config', config]);
    expect([args, code], stderr).toEqual([args, 0]);
  };
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
  expect((await receiver.kill('SIGTERM')).code).toBe(0);
  // Nobody runs: the command has the journal to itself.
  const next = await Receiver.start(config);
  expect((await postSigned(next.url, Buffer.from('{"made":"up-body"}'), { id: 'msg_5' })).status).toBe(202);
  expect((await next.kill('SIGTERM')).code).toBe(0);
  await run('quarantine', 'show', '5');
  await run('quarantine', 'drop', '--all');

  writeConfig(folder, {
    sinks: { other: { type: 'files', path: join(folder, 'other') } },
    routes: [{ match: '*', to: 'other' }],
  });
  await run('sink', 'drop', 'archive');
  writeConfig(folder, {});

  const noted = await audit(config, ['msg_2', 'msg_1', 'msg_3', 'msg_4', 'msg_5']);
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
  const file = join(folder, 'journal', 'audit.jsonl');
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  const text = readFileSync(file, 'utf8');
  for (const secret of [USER, 'up-body', TOKEN, token, 'msg_']) expect(text).not.toContain(secret);

  await run('audit', 'verify');
  writeFileSync(file, text.replace('"config","action":"show"', '"owner","action":"show"'));
  const altered = await millrace(['audit', 'verify', '--config', config]);
  expect([altered.code, altered.stdout]).toEqual([4, expect.stringContaining('audit.jsonl:3: line 2')]);
  writeFileSync(file, text.split('\n').toSpliced(3, 1).join('\n'));
  const removed = await millrace(['audit', 'verify', '--json', '--config', config]);
  expect([removed.code, removed.stdout]).toEqual([4, expect.stringContaining('line 5 follows line 3')]);
});

test('what cannot be noted is not shown and not dropped', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  await postSigned(receiver.url, BODY, { id: 'msg_1' });
  // A head that nobody can read stands for a disk that takes no more.
  writeFileSync(join(folder, 'journal', 'audit.head'), 'no JSON');
  for (const verb of ['show', 'drop']) {
    const { code, stdout, stderr } = await millrace(['quarantine', verb, '1', '--config', config]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('Audit log cannot be written');
  }
  expect((await receiver.status()).journal.quarantined).toBe(1);
});

test('an answer is a page of bounded bytes, whatever lies in quarantine, and no event is left out', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  const ids = Array.from({ length: 7 }, (_, n) => `msg_${n}`);
  const large = Buffer.from(
    JSON.stringify({ event_type: 'daily.data.meal.created', made: 'up'.repeat(1.5e6) }),
  );
  for (const id of ids) expect((await postSigned(receiver.url, large, { id })).status).toBe(202);

  const found: string[] = [];
  for (let after = 0; ;) {
    const answer = await request(`${receiver.adminUrl}/api/quarantine?bodies=true&limit=100&after=${after}`, {
      headers: receiver.authorization,
    });
    const text = await answer.body.text();
    // 8 MiB of bodies, as base64.
    expect(text.length).toBeLessThan(12e6);
    const page = JSON.parse(text) as { key: number; id: string; bytes: number; body_base64: string }[];
    const last = page.at(-1);
    if (last === undefined) break;
    for (const { bytes, body_base64: body } of page) {
      expect(bytes).toBe(large.length);
      expect(Buffer.from(body, 'base64').equals(large)).toBe(true);
    }
    found.push(...page.map(({ id }) => id));
    after = last.key;
  }
  expect(found).toEqual(ids);

  // Without bodies nothing stands in the way of one page, and the sizes are the real ones.
  const { stdout } = await millrace(['quarantine', 'list', '--json', '--config', config]);
  const listed = stdout.split('\n').slice(0, -1);
  expect(listed.map((line) => (JSON.parse(line) as { bytes: number }).bytes)).toEqual(
    ids.map(() => large.length),
  );
  const { stdout: dropped } = await millrace(['quarantine', 'drop', '--all', '--config', config]);
  expect(dropped).toBe('dropped 7\n');
  expect((await receiver.status()).journal.quarantined).toBe(0);
});

test('a log that is gone while its key is there is a difference, exit 4', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  expect((await millrace(['audit', 'verify', '--config', config])).code).toBe(0);
  await new Audit(join(folder, 'journal')).note({
    who: 'command',
    action: 'drop',
    what: 'events',
    ids: ['msg_made_up'],
  });
  expect((await millrace(['audit', 'verify', '--config', config])).code).toBe(0);
  for (const name of ['audit.jsonl', 'audit.head']) rmSync(join(folder, 'journal', name));
  const { code, stdout } = await millrace(['audit', 'verify', '--config', config]);
  expect(stdout).toContain('difference audit.jsonl is missing');
  expect(code).toBe(4);
});
