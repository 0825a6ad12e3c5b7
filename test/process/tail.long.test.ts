import { spawn } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/free-port.ts';
import { childEnvironment, MAIN, millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until, within } from '../support/until.ts';

type Line = Readonly<Record<string, unknown>>;

/** `millrace tail --json` in a process of its own, until the test ends. */
function startTail(config: string, ...args: string[]) {
  const child = spawn(process.execPath, [MAIN, 'tail', '--json', '--config', config, ...args], {
    env: childEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const lines = (): Line[] => stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line) as Line); // prettier-ignore
  return {
    lines,
    stderr: () => stderr,
    /** The ids of so many lines, once they are there. */
    ids: (count: number) => until(`${count} lines, not ${stdout}${stderr}`, () => (lines().length >= count ? lines().map(({ id }) => id) : null)), // prettier-ignore
    stop: async () => {
      child.kill('SIGTERM');
      return within('the end of tail', ended);
    },
    ended,
  };
}

async function post(url: string, id: string, n = 0, type?: string): Promise<number> {
  return (await postSigned(url, madeUpEvent(n, type).body, { id })).status;
}

test('tail shows what happens to each delivery, as it was asked for, over a reload and a restart', async () => {
  const folder = await temporaryFolder();
  // Where it listens stays the same, as in production.
  const admin = { port: await freePort() };
  const config = writeConfig(folder, { admin });
  const receiver = await ReceiverProcess.start(config);
  expect(await post(receiver.url, 'msg_before', 1)).toBe(202);
  const all = startTail(config, '--since', '1h');
  const labs = startTail(config, '--type', 'lab_report.', '--outcome', 'accepted', '--bodies');
  expect(await within('the end of --count', startTail(config, '--since', '1h', '--count', '1').ended)).toBe(
    0,
  );
  expect(await all.ids(1)).toEqual(['msg_before']);
  await until('both watch', async () => {
    await post(receiver.url, `msg_probe_${Math.random()}`, 0, 'lab_report.parsing_job.created');
    return labs.lines().length > 0;
  });
  const [first] = labs.lines();
  expect(first).toMatchObject({ outcome: 'accepted', event_type: 'lab_report.parsing_job.created' });
  const bytes = Buffer.from(String(first?.['body_base64']), 'base64');
  expect(JSON.parse(bytes.toString())).toMatchObject({ event_type: 'lab_report.parsing_job.created' });

  const { body } = madeUpEvent(2, 'daily.data.meal.created');
  for (const status of [202, 200])
    expect((await postSigned(receiver.url, body, { id: 'msg_1' })).status).toBe(status);
  await postSigned(receiver.url, Buffer.from('{}'), { id: 'msg_2' });
  await postSigned(receiver.url, Buffer.from('{}'), {
    id: 'msg_3',
    headers: { 'webhook-signature': 'v1,AAAA' },
  });
  await post(receiver.url, 'msg_4', 3, 'lab_report.parsing_job.updated');
  await until('the body of msg_4', () => labs.lines().find(({ id }) => id === 'msg_4'));
  await until('a delivery', () =>
    all.lines().find((line) => line['sink'] === 'archive' && line['id'] === 'msg_4'),
  );
  const seen = all.lines().filter(({ sink }) => sink === undefined).map(({ outcome, id, code }) => [outcome, id, code]); // prettier-ignore
  for (const line of [
    ['accepted', 'msg_1', undefined],
    ['duplicate', 'msg_1', undefined],
    ['quarantined', 'msg_2', expect.any(String)],
    ['refused', undefined, 'signature_invalid'],
  ])
    expect(seen).toContainEqual(line);
  expect(all.lines().some((line) => 'body_base64' in line)).toBe(false);

  writeConfig(folder, { admin, routes: [{ match: '*', to: ['archive'] }] });
  receiver.signal('SIGHUP');
  await until('the reload', () => receiver.logLines().find(({ msg }) => msg === 'reloaded'));
  await post(receiver.url, 'msg_5', 4);
  await until('a line after the reload', () => all.lines().find(({ id }) => id === 'msg_5'));
  await receiver.kill('SIGKILL');
  const next = await Receiver.start(config);
  await post(next.url, 'msg_6', 5);
  await until('a line after the restart', () => all.lines().find(({ id }) => id === 'msg_6'));
  expect(all.stderr()).toContain('trying again');
  const accepted = all.lines().flatMap(({ outcome, id }) => (outcome === 'accepted' ? [id] : []));
  expect(new Set(accepted).size).toBe(accepted.length);
  expect(await all.stop()).toBe(0);
  await Promise.all(Array.from({ length: 101 }, (_, n) => post(next.url, `msg_many_${n}`, n)));
  const cut = startTail(config, '--since', '1h', '--count', '1');
  expect(await within('the end of --count', cut.ended)).toBe(0);
  expect(cut.lines()).toEqual([expect.objectContaining({ outcome: 'accepted', id: expect.any(String) })]);
  expect(cut.stderr()).toContain('not remembered');

  const notedOf = async (id: string): Promise<string> =>
    (await millrace(['audit', 'list', '--id', id, '--config', config])).stdout;
  expect(await notedOf('msg_4')).toMatch(/owner +show +events/);
  expect(await notedOf('msg_1')).not.toContain('show');
});

test('tail ends with what is wrong where there is nothing to watch', async () => {
  const config = writeConfig(await temporaryFolder());
  expect(await millrace(['tail', '--config', config])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('none runs with this config'),
  });
  expect(await millrace(['tail', '--outcome', 'gone', '--config', config])).toMatchObject({ code: 2 });
});
