import { connect } from 'node:net';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { signStandardWebhooks } from '../../src/receive/verify/sign-standard-webhooks.ts';
import { TEAM } from '../support/events.ts';
import { millrace } from '../support/millrace.ts';
import { Place } from '../support/place.ts';
import { SECRET } from '../support/signed-events.ts';

const USER = '00000000-0000-4000-8000-00000000abcd';
const FIELDS = `"event_type":"daily.data.meal.created","team_id":"${TEAM}","user_id":"${USER}","client_user_id":"c"`;

/** An event around some text that stands in it as it is. */
function around(text: string): Buffer {
  return Buffer.from(`{${FIELDS},"data":${text}}`);
}

/** What may be nowhere but in the journal and the archive. */
const HEALTH = 'MADE-UP-GLUCOSE-5.4';

test('fault 29: neither secrets nor bodies come out in logs, answers, commands or errors', async () => {
  const token = 'made-up-admin-token-9d1c';
  const env = { MILLRACE_SECRET: SECRET, ADMIN_TOKEN: token };
  const place = await Place.make(
    {
      admin: { token: '${ADMIN_TOKEN}' },
      signing: { secrets: ['${MILLRACE_SECRET}'] },
      log: { level: 'trace' },
    },
    env,
  );
  const receiver = await place.start();
  const answers: unknown[] = [];
  const valid = around(`{"glucose":"${HEALTH}"}`);
  for (const body of [valid, Buffer.from(`{"glucose":"${HEALTH}"}`), Buffer.from(`"${HEALTH}`)])
    for (const headers of [
      {},
      { 'webhook-signature': `v1,${HEALTH}` },
      { 'content-type': HEALTH },
      { 'content-encoding': 'gzip' },
    ])
      answers.push(await receiver.post(body, { headers }));
  const outputs: string[] = [JSON.stringify(answers)];
  for (const path of ['/livez', '/readyz', '/metrics', '/console', '/api/status', '/api/quarantine'])
    for (const asked of [{}, receiver.authorization]) {
      const { headers, body } = await request(`${receiver.adminUrl}${path}`, { headers: asked });
      outputs.push(JSON.stringify(headers), await body.text());
    }
  for (const args of [
    ['check'],
    ['check', '--json'],
    ['status'],
    ['status', '--json'],
    ['quarantine', 'list'],
    ['quarantine', 'list', '--json'],
    ['console'],
    ['route', 'daily.data.meal.created'],
    ['serve'],
  ]) {
    const { stdout, stderr } = await place.run(...args);
    outputs.push(stdout, stderr);
  }
  const own = receiver.authorization.authorization.slice('Bearer '.length);
  expect(own.length).toBeGreaterThan(40);
  await receiver.stop();
  outputs.push(receiver.stderr, receiver.stdout);
  // The wrong secrets, too: errors must not quote what they complain about.
  const wrong = `whsec_${SECRET.slice(6, 30)}!`;
  const refused = await millrace(['serve', '--config', place.config], {
    env: { ...env, MILLRACE_SECRET: wrong },
  });
  expect(refused.code).toBe(2);
  outputs.push(refused.stdout, refused.stderr);

  const all = outputs.join('\n');
  expect(all).toContain('quarantined');
  for (const secret of [SECRET, SECRET.slice(6), wrong.slice(6, 30), token, own, HEALTH]) {
    expect(all.includes(secret), `${secret} came out`).toBe(false);
  }
});

/** Posts with header values that no client library would send. Resolves with the status, 0 when there is none. */
function postRaw(url: string, headers: Readonly<Record<string, string>>, body: Buffer): Promise<number> {
  const { hostname, port, pathname } = new URL(url);
  const all = { host: 'x', 'content-type': 'application/json', 'content-length': body.length, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${pathname} HTTP/1.1\r\nconnection: close\r\n${lines.join('')}\r\n`;
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.once('error', () => resolve(0));
    socket.once('close', () => resolve(Number(text.slice(9, 12))));
    socket.write(Buffer.concat([Buffer.from(head, 'latin1'), body]));
  });
}

test('fault 28: line breaks and escape sequences in ids never make a second log line', async () => {
  const place = await Place.make({ log: { level: 'trace' } });
  const receiver = await place.start();
  const body = around('1');
  const texts = [
    'a\u001b[31mred',
    'a\u007f',
    'a\tb',
    'a\rb',
    'a\nwebhook-x: b',
    'a\r\n b',
    'é',
    'x'.repeat(10_000),
  ];
  for (const id of texts) {
    const status = await postRaw(receiver.url, signStandardWebhooks(SECRET, id, Date.now(), body), body);
    expect([0, 400, 401, 431], `id ${JSON.stringify(id)}`).toContain(status);
  }
  // An id of visible characters is taken; what stands in the body is quarantined with its id.
  const injected = '{"level":30,"msg":"made-up"}';
  await receiver.send([{ id: injected, body }]);
  const invalid = Buffer.from(body.toString().replace('daily.', String.raw`\r\n{\"level\":30}\u001b[31m`));
  expect((await receiver.post(invalid)).json).toMatchObject({ status: 'quarantined' });
  const stdout = await place.ok('quarantine', 'list');
  expect(stdout.split('\n'), `a line too many in:\n${stdout}`).toHaveLength(3);
  expect(stdout).not.toContain('\u001b');
  await receiver.stop();

  const lines = receiver.stderr.split('\n').slice(0, -1);
  expect(lines.every((line) => line.startsWith('{"level":') && Number.isInteger(JSON.parse(line).pid))).toBe(
    true,
  );
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  expect(receiver.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
});
