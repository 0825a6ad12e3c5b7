import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { CommandProcess } from '../support/command-process.ts';
import { freePort } from '../support/free-port.ts';
import { listen } from '../support/listen.ts';
import { millrace } from '../support/millrace.ts';
import { Place, saying } from '../support/place.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

const { body: BODY } = madeUpEvent(1);

/** Posts until the watcher has seen one. */
const watched = (receiver: Serving, seen: () => boolean, type?: string): Promise<unknown> =>
  until('the watcher to be there', async () => {
    await receiver.post(madeUpEvent(0, type).body, { id: `msg_probe_${Math.random()}` });
    return seen();
  });

const notedOf = (place: Place, id: string): Promise<string> => place.ok('audit', 'list', '--id', id);
const SHOWN = /owner +show +events/;

/** `millrace tail --json` until the test ends. */
function startTail({ config }: Place, ...args: string[]): CommandProcess {
  return new CommandProcess(['tail', '--json', '--config', config, ...args]);
}

test('tail shows what happens to each delivery, as it was asked for, over a reload and a restart', async () => {
  // Where it listens stays the same, as in production.
  const admin = { port: await freePort() };
  const place = await Place.make({ admin });
  const receiver = await place.startProcess();
  await receiver.send([{ id: 'msg_before', body: BODY }]);
  const all = startTail(place, '--since', '1h');
  const find = (id: string, sink?: string) => () =>
    all.lines().find((line) => line['id'] === id && line['sink'] === sink);
  const labs = startTail(place, '--type', 'lab_report.', '--outcome', 'accepted', '--bodies');
  expect(await startTail(place, '--since', '1h', '--count', '1').ended()).toBe(0);
  await until('a first line', find('msg_before'));
  const type = 'lab_report.parsing_job.created';
  await watched(receiver, () => labs.lines().length > 0, type);
  const [first] = labs.lines();
  expect(first).toMatchObject({ outcome: 'accepted', event_type: type });
  const bytes = Buffer.from(String(first?.['body_base64']), 'base64').toString();
  expect(JSON.parse(bytes)).toMatchObject({ event_type: type });

  for (const status of [202, 200]) expect((await receiver.post(BODY, { id: 'msg_1' })).status).toBe(status);
  const invalid = Buffer.from('{}');
  await receiver.post(invalid, { id: 'msg_2' });
  await receiver.post(invalid, { id: 'msg_3', headers: { 'webhook-signature': 'v1,AAAA' } });
  await receiver.send([{ id: 'msg_4', body: madeUpEvent(3, 'lab_report.parsing_job.updated').body }]);
  await until('the body of msg_4', () => labs.lines().find(({ id }) => id === 'msg_4'));
  await until('a delivery', find('msg_4', 'archive'));
  const seen = all.lines().filter(({ sink }) => sink === undefined);
  for (const line of [
    ['accepted', 'msg_1', undefined],
    ['duplicate', 'msg_1', undefined],
    ['quarantined', 'msg_2', expect.any(String)],
    ['refused', undefined, 'signature_invalid'],
  ])
    expect(seen.map(({ outcome, id, code }) => [outcome, id, code])).toContainEqual(line);
  expect(all.lines().some((line) => 'body_base64' in line)).toBe(false);

  place.write({ admin, routes: [{ match: '*', to: ['archive'] }] });
  await receiver.reload();
  await receiver.send([{ id: 'msg_5', body: BODY }]);
  await until('a line after the reload', find('msg_5'));
  await receiver.kill('SIGKILL');
  const next = await place.start();
  await next.send([{ id: 'msg_6', body: BODY }]);
  await until('a line after the restart', find('msg_6'));
  expect(all.stderr).toContain('trying again');
  const accepted = all.lines().flatMap(({ outcome, id }) => (outcome === 'accepted' ? [id] : []));
  expect(new Set(accepted).size).toBe(accepted.length);
  expect(await all.kill('SIGTERM')).toBe(0);
  await Promise.all(Array.from({ length: 101 }, (_, n) => next.post(BODY, { id: `msg_many_${n}` })));
  const cut = startTail(place, '--since', '1h', '--count', '1');
  expect(await cut.ended()).toBe(0);
  expect(cut.lines()).toMatchObject([{ outcome: 'accepted' }]);
  expect(cut.stderr).toContain('not remembered');

  expect(await notedOf(place, 'msg_4')).toMatch(SHOWN);
  expect(await notedOf(place, 'msg_1')).not.toContain('show');
});

test('tail ends with what is wrong where there is nothing to watch', async () => {
  const place = await Place.make();
  expect(await place.run('tail')).toMatchObject(saying(1, 'none runs with this config'));
  expect(await place.run('tail', '--outcome', 'gone')).toMatchObject({ code: 2 });
});

/** A handler on this machine, and `millrace listen` that forwards to it. */
async function forwarding({ config }: Place) {
  const got: { id: string; body: Buffer; headers: Record<string, string> }[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const headers = request.headers as Record<string, string>;
      const id = headers['webhook-id'] ?? '';
      got.push({ id, body, headers });
      response.writeHead(id === 'msg_2' ? 500 : 204).end();
    });
  });
  const forward = `http://127.0.0.1:${await listen(server)}/hooks`;
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(stop);
  const command = new CommandProcess(['listen', '--forward', forward, '--json', '--config', config]);
  return { got, stop, command };
}

test('a handler gets the bytes and the id of each delivery, signed for it; its status is shown, and harms nothing', async () => {
  const place = await Place.make();
  const receiver = await place.start();
  const { got, stop, command } = await forwarding(place);
  await watched(receiver, () => command.stdout !== '');
  for (const id of ['msg_1', 'msg_1', 'msg_2']) await receiver.post(BODY, { id });
  const lines = await until('all lines', () => {
    const own = command.lines().filter(({ id }) => !String(id).startsWith('msg_probe'));
    return own.length >= 3 && own;
  });
  expect(lines.map(({ id, status }) => `${String(id)} ${String(status)}`).toSorted()).toEqual([
    'msg_1 204',
    'msg_1 204',
    'msg_2 500',
  ]);
  const secret = /signing with (whsec_\S+)/.exec(command.stderr)?.[1] ?? '';
  for (const { id, body, headers } of got.filter(({ id: one }) => !one.startsWith('msg_probe'))) {
    expect(body.equals(BODY), id).toBe(true);
    expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();
  }
  stop();
  await receiver.post(BODY, { id: 'msg_3' });
  await until('a failure', () => /"id":"msg_3".*"status":null/.test(command.stdout));
  expect(await command.kill('SIGTERM')).toBe(0);
  expect((await receiver.drained()).journal.deadLetters).toBe(0);
  expect(await notedOf(place, 'msg_3')).toMatch(SHOWN);
});

test('what came in before it was connected again goes to the handler whole, and is noted', async () => {
  const place = await Place.make({ admin: { port: await freePort() } });
  const receiver = await place.startProcess();
  const { got } = await forwarding(place);
  await watched(receiver, () => got.length > 0);
  await receiver.kill('SIGKILL');
  const next = await place.start();
  const ids = Array.from({ length: 20 }, (_, n) => `msg_again_${n}`);
  await Promise.all(ids.map((id) => next.post(BODY, { id })));
  const bodyOf = (wanted: string): Buffer | undefined => got.find(({ id }) => id === wanted)?.body;
  await until('all of them', () => ids.every(bodyOf));
  for (const id of ids) expect(bodyOf(id)?.equals(BODY), id).toBe(true);
  for (const id of ['msg_again_0', 'msg_again_19']) expect(await notedOf(place, id)).toMatch(/show +events/);
});

test('health data goes to this machine or by https, and nowhere else', async () => {
  const place = await Place.make();
  const run = (...args: string[]) => place.run('listen', ...args);
  expect(await run('--forward', 'http://192.0.2.1/hooks')).toMatchObject(
    saying(2, 'must be on this machine'),
  );
  expect((await run()).code).toBe(2);
  const far = ['--forward', 'https://hooks.example.com/', '--secret-env'];
  expect(await run(...far, 'NOT_SET')).toMatchObject(saying(2, 'NOT_SET'));
  for (const bad of ['not base64!', 'whsec_c2hvcnQ=', `whpk_${Buffer.alloc(32, 1).toString('base64')}`]) {
    const args = ['listen', ...far, 'BAD', '--config', place.config];
    const { code, stderr } = await millrace(args, { env: { BAD: bad } });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^.*--secret-env BAD.*\n$/)]);
    expect(stderr).not.toContain(bad);
  }
});

test('it does not send deliveries back to the receiver they come from, however that is called', async () => {
  const place = await Place.make();
  const { port, pathname } = new URL((await place.start()).url);
  for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
    const forward = `http://${host}:${port}${pathname}`;
    expect(await place.run('listen', '--forward', forward, '--count', '1')).toMatchObject(
      saying(2, `--forward ${forward} leads back to the receiver itself`),
    );
  }
});
