import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { newDeliveryId } from '../../src/sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../src/verify/sign-standard-webhooks.ts';
import { TEAM } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';

const USER = '00000000-0000-4000-8000-00000000abcd';
const FIELDS = `"event_type":"daily.data.meal.created","team_id":"${TEAM}","user_id":"${USER}","client_user_id":"c"`;

/** An event around some text that stands in it as it is. */
function around(text: string): Buffer {
  return Buffer.from(`{${FIELDS},"data":${text}}`);
}

/** Authentic, fit to route, and lost by a parse and a stringify. */
const ODD: Readonly<Record<string, Buffer>> = {
  'duplicate keys': around('{"a":1,"a":2}'),
  'keys that are numbers, not in order': around('{"2":0,"1":0,"b":0,"a":0}'),
  __proto__: around('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}'),
  'lone surrogates': around(String.raw`"\ud800 \udfff \ud83d\ude00"`),
  'numbers beyond a double': around('[9007199254740993,1E400,-0,1.10,1e-400]'),
  'control characters, escaped': around(String.raw`"\u0000\r\n\u001b[31m\u2028"`),
  'white space and line breaks': Buffer.from(
    `\r\n { ${FIELDS} ,\n\t"data" : [ 1 ,\r\n 2 ] }\n`.replaceAll('":"', '" : "'),
  ),
  'an unknown type': Buffer.from(
    `{"event_type":"nobody.knows.this.yet","team_id":"${TEAM}","user_id":"${USER}","client_user_id":"c","data":{"status":"no_such_value"}}`,
  ),
  'client user ids that look like paths': Buffer.from(
    `{${FIELDS.replace('"client_user_id":"c"', String.raw`"client_user_id":"../../../x\u0000CON"`)}}`,
  ),
  'other scripts': around('"ﷺ 漢字 \u{1f9ec} e\u0301"'),
};

test('faults 25, 27, 31: odd bodies are archived byte for byte, and nothing else is written', async () => {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const config = writeConfig(folder, {
    sinks: { archive: { type: 'files', path: archive, partitionBy: ['date', 'type', 'team'] } },
    envelope: { userIds: 'text' },
  });
  const receiver = await Receiver.start(config);
  const taken = new Map<string, Buffer>();
  const taking = async (body: Buffer, id = newDeliveryId()): Promise<void> => {
    const answer = await postSigned(receiver.url, body, { id });
    expect({ ...answer.json, status: answer.status }).toEqual({ status: 202, id });
    taken.set(id, body);
  };
  for (const body of Object.values(ODD)) await taking(body);
  const plain = around('{}');
  for (const id of ['../../../x', '/etc/passwd', 'CON', 'a'.repeat(256), '%00', '$(id)', '..']) {
    await taking(plain, id);
  }
  for (const type of ['../../../x', '..', 'CON', 'a/b', String.raw`a\\b`, 'a'.repeat(256)]) {
    await taking(Buffer.from(plain.toString().replace('daily.data.meal.created', type)));
  }
  for (const team of ['../../../x', 'CON', '.', 'a'.repeat(256)]) {
    await taking(Buffer.from(plain.toString().replace(TEAM, team)));
  }
  expect((await receiver.status()).journal).toMatchObject({ quarantined: 0, deadLetters: 0 });
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  const found = await readBack(archive);
  expectConserved(found, taken);
  expectOnce(found);
  await expectWhole(archive);
  expect(readdirSync(folder).toSorted()).toEqual(['archive', 'erasure', 'journal', 'millrace.yaml']);
  expect(Object.hasOwn(Object.prototype, 'admin')).toBe(false);
});

/** Authentic, but not fit to route. */
const UNFIT: Readonly<Record<string, Buffer>> = {
  'invalid UTF-8': Buffer.concat([around('').subarray(0, -1), Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x7d])]),
  'a byte order mark': Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), around('1')]),
  nothing: Buffer.alloc(0),
  'a list': Buffer.from(`[${around('1').toString()}]`),
  '200,000 levels': around(`${'['.repeat(200_000)}${']'.repeat(200_000)}`),
  'no team': Buffer.from(around('1').toString().replace('team_id', 'team')),
  'a NUL in the type': Buffer.from(
    around('1')
      .toString()
      .replace('daily.', String.raw`daily\u0000.`),
  ),
  'a line break in the team': Buffer.from(
    around('1')
      .toString()
      .replace(TEAM, String.raw`a\r\nb`),
  ),
};

test('faults 24, 26: invalid bodies are quarantined byte for byte, and can be looked at', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  const kept = new Map<string, string>();
  for (const [name, body] of Object.entries(UNFIT)) {
    const id = newDeliveryId();
    const { status, json } = await postSigned(receiver.url, body, { id });
    expect({ name, status, json }).toMatchObject({ name, status: 202, json: { status: 'quarantined', id } });
    kept.set(id, body.toString('base64'));
  }
  const list = await millrace(['quarantine', 'list', '--json', '--config', config]);
  const found = new Map<string, string>();
  for (const line of list.stdout.split('\n').slice(0, -1)) {
    const { key, id } = JSON.parse(line) as { key: number; id: string };
    const show = await millrace(['quarantine', 'show', String(key), '--json', '--config', config]);
    found.set(id, (JSON.parse(show.stdout) as { body_base64: string }).body_base64);
  }
  expect(found).toEqual(kept);
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(await readBack(join(folder, 'archive'))).toEqual(new Map());
});

/** What may be nowhere but in the journal and the archive. */
const HEALTH = 'MADE-UP-GLUCOSE-5.4';

test('fault 29: neither secrets nor bodies come out in logs, answers, commands or errors', async () => {
  const folder = await temporaryFolder();
  const token = 'made-up-admin-token-9d1c';
  const config = writeConfig(folder, {
    admin: { token: '${ADMIN_TOKEN}' },
    signing: { secrets: ['${MILLRACE_SECRET}'] },
    log: { level: 'trace' },
  });
  const env = { MILLRACE_SECRET: SECRET, ADMIN_TOKEN: token };
  const receiver = await Receiver.start(config, { env });
  const answers: unknown[] = [];
  const fit = around(`{"glucose":"${HEALTH}"}`);
  for (const body of [fit, Buffer.from(`{"glucose":"${HEALTH}"}`), Buffer.from(`"${HEALTH}`)]) {
    answers.push(await postSigned(receiver.url, body));
    answers.push(await postSigned(receiver.url, body, { headers: { 'webhook-signature': `v1,${HEALTH}` } }));
    answers.push(await postSigned(receiver.url, body, { headers: { 'content-type': HEALTH } }));
    answers.push(await postSigned(receiver.url, body, { headers: { 'content-encoding': 'gzip' } }));
  }
  const outputs: string[] = [JSON.stringify(answers)];
  const command = async (...args: string[]): Promise<void> => {
    const { stdout, stderr } = await millrace(args, { env });
    outputs.push(stdout, stderr);
  };
  for (const path of ['/livez', '/readyz', '/metrics', '/console', '/api/status', '/api/quarantine']) {
    for (const asked of [{}, receiver.authorization]) {
      const { headers, body } = await request(`${receiver.adminUrl}${path}`, { headers: asked });
      outputs.push(JSON.stringify(headers), await body.text());
    }
  }
  await command('serve', '--help');
  await command('check', '--config', config);
  await command('check', '--config', config, '--json');
  await command('status', '--config', config);
  await command('status', '--config', config, '--json');
  await command('quarantine', 'list', '--config', config);
  await command('quarantine', 'list', '--config', config, '--json');
  await command('console', '--config', config);
  await command('route', 'daily.data.meal.created', '--config', config);
  await command('serve', '--config', config);
  const own = receiver.authorization.authorization.slice('Bearer '.length);
  expect(own.length).toBeGreaterThan(40);
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  outputs.push(receiver.stderr, receiver.stdout);
  // The wrong secrets, too: errors must not quote what they complain about.
  const wrong = `whsec_${SECRET.slice(6, 30)}!`;
  const refused = await millrace(['serve', '--config', config], { env: { ...env, MILLRACE_SECRET: wrong } });
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
  const folder = await temporaryFolder();
  const config = writeConfig(folder, { log: { level: 'trace' } });
  const receiver = await Receiver.start(config);
  const body = around('1');
  const ids = [
    'a\u001b[31mred',
    'a\u007f',
    'a\tb',
    'a\rb',
    'a\nwebhook-x: b',
    'a\r\n b',
    'é',
    'x'.repeat(10_000),
  ];
  for (const id of ids) {
    const status = await postRaw(receiver.url, signStandardWebhooks(SECRET, id, Date.now(), body), body);
    expect([0, 400, 401, 431], `id ${JSON.stringify(id)}`).toContain(status);
  }
  // An id of visible characters is taken; what stands in the body is quarantined with its id.
  const injected = '{"level":30,"msg":"made-up"}';
  expect(await postSigned(receiver.url, body, { id: injected })).toMatchObject({ status: 202 });
  const invalid = Buffer.from(body.toString().replace('daily.', String.raw`\r\n{\"level\":30}\u001b[31m`));
  expect((await postSigned(receiver.url, invalid)).json).toMatchObject({ status: 'quarantined' });
  const { stdout } = await millrace(['quarantine', 'list', '--config', config]);
  expect(stdout.split('\n'), `a line too many in:\n${stdout}`).toHaveLength(3);
  expect(stdout).not.toContain('\u001b');
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });

  const lines = receiver.stderr.split('\n').slice(0, -1);
  expect(lines.every((line) => line.startsWith('{"level":') && Number.isInteger(JSON.parse(line).pid))).toBe(
    true,
  );
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  expect(receiver.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
});
