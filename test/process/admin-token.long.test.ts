import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

async function statusOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const { statusCode, body } = await request(url, { headers });
  await body.dump();
  return statusCode;
}

const tokenIn = (file: string): string => (JSON.parse(readFileSync(file, 'utf8')) as { token: string }).token;

test('from the first start the admin API asks for a token that only its user can read', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const owner = join(folder, 'journal', 'owner.json');
  const receiver = await ReceiverProcess.start(config);
  expect((statSync(owner).mode & 0o777).toString(8)).toBe('600');
  const token = tokenIn(owner);
  expect(token).toMatch(/^[\w-]{43}$/);
  const { adminUrl } = receiver;
  for (const path of ['/api/status', '/api/events', '/api/quarantine', '/api/console', '/api/erasures'])
    expect([path, await statusOf(adminUrl + path)]).toEqual([path, 401]);
  expect(await statusOf(`${adminUrl}/api/status`, { authorization: `Bearer ${token}` })).toBe(200);
  for (const path of ['/livez', '/readyz', '/metrics', '/console/'])
    expect([path, await statusOf(adminUrl + path)]).toEqual([path, 200]);
  expect(receiver.stderr + receiver.stdout).not.toContain(token);

  // A token of a receiver that has died opens no other.
  await receiver.kill('SIGKILL');
  const next = await ReceiverProcess.start(config);
  expect(tokenIn(owner)).not.toBe(token);
  expect(await statusOf(`${next.adminUrl}/api/status`, { authorization: `Bearer ${token}` })).toBe(401);
  await next.kill('SIGTERM');
  expect(existsSync(owner)).toBe(false);
});

test('commands find the way into a running receiver without an option', async () => {
  const folder = await temporaryFolder();
  for (const [name, admin] of [
    ['generated', {}],
    ['configured', { token: 'made-up-token-of-the-config' }],
  ] as const) {
    const config = writeConfig(await temporaryFolder(), { admin });
    const receiver = await ReceiverProcess.start(config);
    expect((await postSigned(receiver.url)).status).toBe(202);
    const invalid = Buffer.from('{"event_type":"daily.data.meal.created"}');
    expect((await postSigned(receiver.url, invalid, { id: 'msg_invalid' })).json['status']).toBe(
      'quarantined',
    );
    for (const [args, said] of [
      [['status', '--json'], `"pid":${receiver.pid}`],
      [['quarantine', 'list'], 'msg_invalid'],
      [['quarantine', 'show', '1'], 'event_type'],
      [['dead-letters', 'list'], ''],
      [['erase', '--list'], ''],
      [['reconcile'], ''],
      [['replay', 'journal', '--to', 'archive', '--state', join(folder, name)], ''],
      [['console', '--json'], '"valid_seconds":300'],
    ] as const) {
      const ended = await millrace([...args, '--config', config]);
      expect([name, args, ended.code], ended.stderr).toEqual([name, args, 0]);
      expect(ended.stdout).toContain(said);
    }
  }
});
