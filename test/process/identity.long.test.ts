import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import type { Serving } from '../support/serving.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned, SECRET, type Answer } from '../support/signed-events.ts';

const OTHER_SECRET = `whsec_${Buffer.from('another made-up secret of tests').toString('base64')}`;
const REUSED = { status: 'quarantined', code: 'id_reused' };

const bodies = [1, 2, 3, 4].map((n) => madeUpEvent(n).body) as [Buffer, Buffer, Buffer, Buffer];

async function quarantined(config: string): Promise<{ id: string; code: string; body: Buffer }[]> {
  const { stdout } = await millrace(['quarantine', 'list', '--json', '--config', config]);
  const lines = stdout.split('\n').filter(Boolean);
  return Promise.all(
    lines.map(async (line) => {
      const { key, id, reasons } = JSON.parse(line) as {
        key: number;
        id: string;
        reasons: { code: string }[];
      };
      const shown = await millrace(['quarantine', 'show', String(key), '--json', '--config', config]);
      const { body_base64: body } = JSON.parse(shown.stdout) as { body_base64: string };
      return { id, code: reasons[0]?.code ?? '', body: Buffer.from(body, 'base64') };
    }),
  );
}

test('an id that comes again with other bytes is kept and named, never a duplicate', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, {
    signing: { secrets: [SECRET, OTHER_SECRET] },
  });
  let receiver: Serving = await ReceiverProcess.start(config);
  const post = async (id: string, body: Buffer, secret = SECRET): Promise<Answer> =>
    postSigned(receiver.url, body, { id, secret });
  const [genuine, burnt, third, fourth] = bodies;
  // Whoever holds a second secret takes the id first; the genuine event is not lost to it.
  expect(await post('msg_a', burnt, OTHER_SECRET)).toMatchObject({
    status: 202,
    json: { status: 'accepted' },
  });
  expect(await post('msg_a', genuine)).toMatchObject({ status: 202, json: { ...REUSED, id: 'msg_a' } });
  // Each comes again, as a sender does that has missed the answer.
  expect(await post('msg_a', genuine)).toMatchObject({ status: 200, json: { status: 'duplicate' } });
  expect(await post('msg_a', burnt)).toMatchObject({ status: 200, json: { status: 'duplicate' } });
  expect(await post('msg_a', third)).toMatchObject({ status: 202, json: REUSED });
  // A fit event after an invalid one of its id.
  expect(await post('msg_b', Buffer.from('{}'))).toMatchObject({ json: { status: 'quarantined' } });
  expect(await post('msg_b', genuine)).toMatchObject({ status: 202, json: REUSED });
  // The same after a restart.
  await receiver.kill('SIGKILL');
  receiver = await Receiver.start(config);
  expect(await post('msg_a', genuine)).toMatchObject({ status: 200, json: { status: 'duplicate' } });
  expect(await post('msg_a', fourth)).toMatchObject({ status: 202, json: REUSED });
  const kept = await quarantined(config);
  expect(kept.filter(({ code }) => code === 'id_reused')).toEqual([
    { id: 'msg_a', code: 'id_reused', body: genuine },
    { id: 'msg_a', code: 'id_reused', body: third },
    { id: 'msg_b', code: 'id_reused', body: genuine },
    { id: 'msg_a', code: 'id_reused', body: fourth },
  ]);
  const metrics = await (await request(`${receiver.adminUrl}/metrics`)).body.text();
  expect(metrics).toMatch(/millrace_quarantined_total\{code="id_reused"\} 1\b/);
  // Which of two events of one id is the right one, a person has to say: by its key, and not with all.
  expect((await millrace(['quarantine', 'retry', '--all', '--config', config])).stdout).toMatch(
    /^retried 0, kept 5 \(.*id_reused, which has to be named by its key\)/,
  );
  expect((await millrace(['quarantine', 'retry', '1', '--config', config])).stdout).toContain('retried 1');
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const copies = (await readBack(join(folder, 'archive'))).get('msg_a') ?? [];
  expect(copies.map(({ body }) => body.toString())).toEqual([burnt.toString(), genuine.toString()]);
  expect((await millrace(['reconcile', '--config', config])).code).toBe(0);
});

test('a captured delivery cannot be sent again under the id of another: an id that is not signed is no id', async () => {
  const secret = 'made-up secret of the tests only';
  const folder = await temporaryFolder();
  const unsigned = writeConfig(folder, {
    signing: { scheme: 'hmac', secrets: [secret], hmac: { header: 'x-sig', idHeader: 'x-id' } },
  });
  for (const command of ['check', 'serve']) {
    const { code, stderr } = await millrace([command, '--config', unsigned]);
    expect({ command, code }).toEqual({ command, code: 2 });
    expect(stderr).toContain('signing.hmac.idHeader: must be signed');
  }
  const config = writeConfig(folder, {
    signing: { scheme: 'hmac', secrets: [secret], hmac: { header: 'x-sig' } },
  });
  const receiver = await Receiver.start(config);
  const post = async (id: string, body: Buffer): Promise<number> => {
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = { 'content-type': 'application/json', 'x-sig': signature, 'x-id': id };
    const { statusCode, body: answer } = await request(receiver.url, { method: 'POST', headers, body });
    await answer.dump();
    return statusCode;
  };
  const [captured, genuine] = bodies;
  const statuses = [];
  for (const guessed of ['1', '2', '3', '4']) statuses.push(await post(guessed, captured));
  expect(statuses).toEqual([202, 200, 200, 200]);
  expect(await post('3', genuine)).toBe(202);
  await receiver.drained();
  await receiver.kill('SIGTERM');
  const found = [...(await readBack(join(folder, 'archive'))).values()]
    .flat()
    .map(({ body }) => body.toString());
  expect(found.toSorted()).toEqual([captured, genuine].map(String).toSorted());
});

test('with acknowledge: delivered an id with other bytes goes where invalid events go, or stays with the sender', async () => {
  const [first, second] = bodies;
  for (const to of ['kept', null]) {
    const folder = await temporaryFolder();
    const sinks = {
      archive: { type: 'files', path: join(folder, 'archive'), rotate: { every: '1s' } },
      kept: { type: 'files', path: join(folder, 'kept') },
    };
    const config = writeConfig(folder, {
      acknowledge: 'delivered' as never,
      sinks,
      routes: [{ match: '*', to: ['archive'] }] as never,
      ...(to === null ? {} : { quarantine: { to } }),
    });
    const receiver = await Receiver.start(config);
    expect((await postSigned(receiver.url, first, { id: 'msg_a' })).json).toMatchObject({
      status: 'accepted',
    });
    expect((await postSigned(receiver.url, first, { id: 'msg_a' })).status).toBe(200);
    const { status, json } = await postSigned(receiver.url, second, { id: 'msg_a' });
    if (to === null) expect(status).toBe(422);
    else expect({ status, json }).toMatchObject({ status: 202, json: REUSED });
    await receiver.kill('SIGTERM');
    if (to === null) continue;
    const [copy] = (await readBack(join(folder, 'kept'))).get('msg_a') ?? [];
    expect(copy?.body.equals(second)).toBe(true);
  }
});
