import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/free-port.ts';
import { listen } from '../support/listen.ts';
import { childEnvironment, MAIN, millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until, within } from '../support/until.ts';

test('a handler gets the bytes and the id of each delivery, signed for it; its status is shown, and harms nobody', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  const got: { id: string; body: Buffer; headers: Record<string, string> }[] = [];
  const handler = createServer((request, response) => {
    void buffer(request).then((body) => {
      const headers = request.headers as Record<string, string>;
      const id = headers['webhook-id'] ?? '';
      if (!id.startsWith('msg_probe')) got.push({ id, body, headers });
      response.writeHead(id === 'msg_2' ? 500 : 204).end();
    });
  });
  const port = await listen(handler);
  onTestFinished(() => {
    handler.closeAllConnections();
    handler.close();
  });
  const forward = `http://127.0.0.1:${port}/hooks`;
  const child = spawn(
    process.execPath,
    [MAIN, 'listen', '--forward', forward, '--json', '--config', config],
    {
      env: childEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  await until('a first line', async () => {
    await postSigned(receiver.url, madeUpEvent(0).body, { id: `msg_probe_${Math.random()}` });
    return stdout !== '';
  });
  const { body } = madeUpEvent(1);
  for (const id of ['msg_1', 'msg_1', 'msg_2']) await postSigned(receiver.url, body, { id });
  const lines = await until('all lines', () => {
    const all = stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line) as Record<string, unknown>); // prettier-ignore
    const own = all.filter(({ id }) => !String(id).startsWith('msg_probe'));
    return own.length >= 3 && own;
  });
  expect(
    lines.map(({ id, status }) => [id, status]).toSorted((a, b) => String(a).localeCompare(String(b))),
  ).toEqual([
    ['msg_1', 204],
    ['msg_1', 204],
    ['msg_2', 500],
  ]);
  const secret = /signing with (whsec_\S+)/.exec(stderr)?.[1] ?? '';
  for (const { body: sent, headers } of got) {
    expect(sent.equals(body)).toBe(true);
    expect(() => new Webhook(secret).verify(sent, headers)).not.toThrow();
  }
  handler.closeAllConnections();
  handler.close();
  await postSigned(receiver.url, body, { id: 'msg_3' });
  await until('a failure', () => /"id":"msg_3".*"status":null/.test(stdout));
  child.kill('SIGTERM');
  expect(await within('the end of listen', ended)).toBe(0);
  expect((await receiver.drained()).journal.deadLetters).toBe(0);
  const audit = await millrace(['audit', 'list', '--id', 'msg_3', '--config', config]);
  expect(audit.stdout).toMatch(/owner +show +events/);
});

test('what came in before it was connected again goes to the handler whole, and is noted', async () => {
  const folder = await temporaryFolder();
  // Where it listens stays the same, as in production.
  const config = writeConfig(folder, { admin: { port: await freePort() } });
  const receiver = await ReceiverProcess.start(config);
  const got = new Map<string, Buffer>();
  const handler = createServer((request, response) => {
    void buffer(request).then((body) => {
      got.set(String(request.headers['webhook-id']), body);
      response.writeHead(204).end();
    });
  });
  const port = await listen(handler);
  onTestFinished(() => {
    handler.closeAllConnections();
    handler.close();
  });
  const forward = `http://127.0.0.1:${port}/`;
  const child = spawn(process.execPath, [MAIN, 'listen', '--forward', forward, '--config', config], {
    env: childEnvironment(),
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const { body } = madeUpEvent(1);
  await until('a first one', async () => {
    await postSigned(receiver.url, body, { id: `msg_probe_${Math.random()}` });
    return got.size > 0;
  });
  await receiver.kill('SIGKILL');
  const next = await Receiver.start(config);
  const ids = Array.from({ length: 20 }, (_, n) => `msg_again_${n}`);
  await Promise.all(ids.map((id) => postSigned(next.url, body, { id })));
  await until('all of them', () => ids.every((id) => got.has(id)));
  for (const id of ids) expect(got.get(id)?.equals(body), id).toBe(true);
  for (const id of [ids[0] ?? '', ids.at(-1) ?? '']) {
    const { stdout } = await millrace(['audit', 'list', '--config', config, '--id', id]);
    expect(stdout).toMatch(/show +events/);
  }
});

test('health data goes to this machine or by https, and nowhere else', async () => {
  const config = writeConfig(await temporaryFolder());
  const run = (...args: string[]) => millrace(['listen', '--config', config, ...args]);
  expect(await run('--forward', 'http://192.0.2.1/hooks')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('must be on this machine'),
  });
  expect((await run()).code).toBe(2);
  expect(await run('--forward', 'https://hooks.example.com/', '--secret-env', 'NOT_SET')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('NOT_SET'),
  });
  for (const bad of ['not base64!', 'whsec_c2hvcnQ=', `whpk_${Buffer.alloc(32, 1).toString('base64')}`]) {
    const args = ['--forward', 'https://hooks.example.com/', '--secret-env', 'BAD'];
    const { code, stderr } = await millrace(['listen', '--config', config, ...args], { env: { BAD: bad } });
    expect(code, stderr).toBe(2);
    expect(stderr).toContain('--secret-env BAD');
    expect(stderr).not.toContain(bad);
    expect(stderr.trimEnd().split('\n'), stderr).toHaveLength(1);
  }
});

test('it does not send deliveries back to the receiver they come from, however that is called', async () => {
  const config = writeConfig(await temporaryFolder());
  const receiver = await Receiver.start(config);
  const { port, pathname } = new URL(receiver.url);
  for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
    const forward = `http://${host}:${port}${pathname}`;
    const { code, stderr } = await millrace([
      'listen',
      '--forward',
      forward,
      '--count',
      '1',
      '--config',
      config,
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain(`--forward ${forward} leads back to the receiver itself`);
  }
});
