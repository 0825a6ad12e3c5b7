import { connect, type Socket } from 'node:net';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import type { Serving } from '../support/serving.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const OTHER_SECRET = `whsec_${Buffer.from('another secret of the tests only').toString('base64')}`;

async function metric({ adminUrl }: Serving, name: string): Promise<number> {
  const text = await (await request(`${adminUrl}/metrics`)).body.text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')
      .at(-1),
  );
}

function idle(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  // Cut when others need its place.
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  return new Promise((resolve) => socket.once('connect', () => resolve(socket)));
}

test('an event of a team that its secret is not bound to is refused by name', async () => {
  const folder = await temporaryFolder();
  const bound = { secret: OTHER_SECRET, teams: ['6b0e9a52-0000-4000-8000-0000000000ff'] };
  const config = writeConfig(folder, { signing: { secrets: [SECRET, bound] } });
  const receiver = await Receiver.start(config);
  const { id, body } = madeUpEvent(0);
  expect((await postSigned(receiver.url, body, { id, secret: OTHER_SECRET })).status).toBe(401);
  expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  await until('the refusal in status', async () => {
    const { receiving } = await receiver.status();
    return receiving?.refused['signature_foreign'] === 1;
  });
  const text = await (await request(`${receiver.adminUrl}/metrics`)).body.text();
  expect(text).toMatch(/^millrace_events_total\{.*outcome="signature_foreign".*\} 1$/m);
});

test('a wrong secret shows in the log, in status and on the console, by reason', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const receiver = await Receiver.start(config);
  for (let n = 0; n < 12; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id, secret: OTHER_SECRET })).status).toBe(401);
  }
  const { id, body } = madeUpEvent(100);
  expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  await until('all refusals in status', async () => {
    const { receiving } = await receiver.status();
    return receiving?.refused['signature_invalid'] === 12;
  });
  const { stdout } = await millrace(['status', '--config', config]);
  expect(stdout).toMatch(/^refused +since the start at \d{4}-\S+Z: 12 signature_invalid$/m);
  expect(stdout).toMatch(/^connections +\d+ of 10000; 0 idle ones closed to make room, 0 rejected$/m);
  const state = (await (
    await request(`${receiver.adminUrl}/api/console?since=0&after=0`, {
      headers: receiver.authorization,
    })
  ).body.json()) as {
    receiving: unknown;
  };
  expect(state.receiving).toMatchObject({ refused: { signature_invalid: 12 } });
  const warnings = (): Record<string, unknown>[] =>
    receiver.logLines().filter(({ msg }) => msg === 'deliveries refused');
  expect(warnings()).toMatchObject([
    { level: 40, refused: 1, codes: { signature_invalid: 1 }, last: 'no signature matches any secret' },
  ]);
  await receiver.kill('SIGTERM');
  expect(warnings().slice(1)).toMatchObject([{ refused: 11, codes: { signature_invalid: 11 } }]);
});

test('idle connections in every place do not keep a sender out, and are counted', async () => {
  const folder = await temporaryFolder();
  const receiver = await Receiver.start(writeConfig(folder, { server: { maxConnections: 10 } }));
  const port = Number(new URL(receiver.url).port);
  const sockets = await Promise.all(Array.from({ length: 30 }, () => idle(port)));
  await until('a place for ten of the thirty', async () => {
    const open = await metric(receiver, 'millrace_connections');
    const evicted = await metric(receiver, 'millrace_connections_evicted_total');
    return open <= 10 && open + evicted === sockets.length;
  });
  for (let n = 0; n < 20; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  }
  expect(await metric(receiver, 'millrace_connections_dropped_total')).toBe(0);
  const { receiving } = await receiver.status();
  expect(receiving?.connections).toMatchObject({ max: 10, dropped: 0 });
});
