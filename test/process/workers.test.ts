import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { LoadSender } from '../support/load-sender.ts';
import { millraceProcess, writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { listen } from '../support/listen.ts';

const GATED = fileURLToPath(new URL('./gated-sink.ts', import.meta.url));
const REFUSING = fileURLToPath(new URL('./refusing-sink.ts', import.meta.url));
const OTHER_SECRET = `whsec_${Buffer.from('another secret of the tests only').toString('base64')}`;

/** A config with two workers; everything goes to the archive unless `changes` say otherwise. */
function config(folder: string, changes: Parameters<typeof writeConfig>[1] = {}): string {
  return writeConfig(folder, { ...changes, server: { workers: 2, ...changes['server'] } });
}

/** Pids of the workers that a receiver has now, from the kernel. */
function workersOf({ pid }: ReceiverProcess): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
}

async function metric({ adminUrl }: ReceiverProcess, name: string): Promise<number> {
  const text = await (await request(`${adminUrl}/metrics`)).body.text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1));
}

async function expectAllThere(folder: string, sender: LoadSender): Promise<void> {
  const found = await readBack(join(folder, 'archive'));
  expect(sender.acknowledged.size).toBeGreaterThan(0);
  expectConserved(found, sender.acknowledged, sender.sent);
  expectOnce(found);
  await expectWhole(join(folder, 'archive'));
}

test('workers killed under load, again and again: what was acknowledged is there once, and others take their place', async () => {
  const folder = await temporaryFolder();
  const receiver = await ReceiverProcess.start(config(folder));
  const sender = new LoadSender();
  const started = (): number => receiver.logLines().filter(({ msg }) => msg === 'worker started').length;
  for (let round = 1; round <= 3; round += 1) {
    const [victim = 0, ...others] = workersOf(receiver);
    expect(others).toHaveLength(1);
    await sender.during(receiver.url, 60, () => {
      process.kill(victim, 'SIGKILL');
      return until('another worker', () => started() === round).then(() => undefined);
    });
    expect(workersOf(receiver)).not.toContain(victim);
  }
  // Both at once: the port is the same afterwards, although nobody had it in between.
  for (const pid of workersOf(receiver)) process.kill(pid, 'SIGKILL');
  await until('two more workers', () => started() === 5);
  await sender.during(receiver.url, 60, () => Promise.resolve());
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(sender.refused).toBe(0);
  await expectAllThere(folder, sender);
});

test('the first process killed under load takes its workers with it; the next start has all that was acknowledged', async () => {
  const folder = await temporaryFolder();
  const file = config(folder);
  const sender = new LoadSender();
  for (let round = 0; round < 2; round += 1) {
    const receiver = await ReceiverProcess.start(file);
    const workers = workersOf(receiver);
    await sender.during(receiver.url, 60, async () => {
      await receiver.kill('SIGKILL');
      await until('the end of the workers', () => workers.every((pid) => !existsSync(`/proc/${pid}`)));
    });
  }
  const receiver = await ReceiverProcess.start(file);
  await receiver.drained();
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  await expectAllThere(folder, sender);
});

test('SIGTERM to the whole group under load: what has begun is answered, all is flushed, exit 0', async () => {
  const folder = await temporaryFolder();
  const receiver = await ReceiverProcess.start(config(folder));
  const sender = new LoadSender();
  const workers = workersOf(receiver);
  await sender.during(receiver.url, 100, async () => {
    // As a terminal does: the workers are to wait for what the first process says.
    for (const pid of workers) process.kill(pid, 'SIGTERM');
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  });
  expect(receiver.logLines().at(-1)).toMatchObject({ msg: 'stopped' });
  expect(workers.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
  await expectAllThere(folder, sender);
});

test('what workers answer is counted in the first process', async () => {
  const folder = await temporaryFolder();
  const receiver = await ReceiverProcess.start(config(folder));
  const { id, body } = madeUpEvent(1);
  const statuses: number[] = [];
  for (const [sent, secret] of [
    [body, SECRET],
    [body, SECRET],
    [body, OTHER_SECRET],
    [Buffer.from('{}'), SECRET],
  ] as const) {
    const own = sent === body ? id : madeUpEvent(2).id;
    statuses.push((await postSigned(receiver.url, sent, { id: own, secret })).status);
  }
  expect(statuses).toEqual([202, 200, 401, 202]);
  for (const outcome of ['accepted', 'duplicate', 'signature_invalid', 'quarantined']) {
    const name = `millrace_events_total{source="webhooks",outcome="${outcome}"}`;
    await until(`one ${outcome}`, async () => (await metric(receiver, name)) === 1);
  }
  await until('nothing in flight', async () => (await metric(receiver, 'millrace_receive_in_flight')) === 0);
  expect((await receiver.status()).journal).toMatchObject({ events: 1, quarantined: 1 });
});

test('a reload does not wait for ever for a worker that hangs: it is killed, and the next one has the new secret', async () => {
  const folder = await temporaryFolder();
  const file = config(folder);
  const receiver = await ReceiverProcess.start(file);
  const [hanging = 0] = workersOf(receiver);
  process.kill(hanging, 'SIGSTOP');
  writeFileSync(file, readFileSync(file, 'utf8').replace(SECRET, OTHER_SECRET));
  receiver.signal('SIGHUP');
  const logged = (message: string): boolean => receiver.logLines().some(({ msg }) => msg === message);
  await until('the line "reloaded"', () => logged('reloaded'));
  expect(workersOf(receiver)).not.toContain(hanging);
  await until('another worker', () => logged('worker started'));
  // Connections of their own, so that both workers answer.
  const statuses = await Promise.all(
    Array.from({ length: 8 }, async (_, n) => {
      const dispatcher = new Agent();
      onTestFinished(() => dispatcher.destroy());
      const { id, body } = madeUpEvent(n);
      return (await postSigned(receiver.url, body, { id, secret: OTHER_SECRET, dispatcher })).status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([202]));
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
});

test('the mark for the backlog reaches the workers, and so does its end', async () => {
  const folder = await temporaryFolder();
  const receiver = await ReceiverProcess.start(
    config(folder, { journal: { maxBacklog: 3 }, sinks: { gated: { type: GATED, folder } } }),
  );
  let n = 0;
  const post = async (): Promise<{ status: number; code: unknown }> => {
    const { id, body } = madeUpEvent((n += 1));
    const { status, json } = await postSigned(receiver.url, body, { id });
    return { status, code: json['code'] };
  };
  const refused = await until('a refusal', async () => {
    const answer = await post();
    return answer.status === 202 ? null : answer;
  });
  expect(refused).toEqual({ status: 503, code: 'backlog_full' });
  writeFileSync(join(folder, 'gate'), '');
  await until('deliveries to be taken again', async () => (await post()).status === 202);
});

test('with acknowledge: delivered the answer is that of the sink', async () => {
  const folder = await temporaryFolder();
  const stateless = { acknowledge: 'delivered' } as unknown as Record<string, object>;
  const receiver = await ReceiverProcess.start(
    config(folder, {
      ...stateless,
      sinks: { archive: { type: 'files', path: join(folder, 'archive') }, refusing: { type: REFUSING } },
      routes: [
        { match: ['labtest.', 'lab_report.'], to: ['refusing'] },
        { match: '*', to: ['archive'] },
      ],
    }),
  );
  const acknowledged = new Map<string, Buffer>();
  const codes = new Set<unknown>();
  for (let n = 0; n < 20; n += 1) {
    const { id, body } = madeUpEvent(n);
    const { status, json } = await postSigned(receiver.url, body, { id });
    if (status === 202) acknowledged.set(id, body);
    else codes.add(json['code']);
  }
  expect(acknowledged.size).toBeGreaterThan(0);
  expect([...codes]).toEqual(['sink_refused']);
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expectConserved(await readBack(join(folder, 'archive')), acknowledged);
});

test('each with a socket of its own: reusePort', async () => {
  const folder = await temporaryFolder();
  const receiver = await ReceiverProcess.start(config(folder, { server: { reusePort: true } }));
  const sender = new LoadSender();
  await sender.during(receiver.url, 60, () => Promise.resolve());
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  await expectAllThere(folder, sender);
});

test('an address that is taken is said by name, and nothing is left running', async () => {
  const folder = await temporaryFolder();
  const taken = createServer();
  onTestFinished(() => void taken.close());
  const port = await listen(taken);
  const { code, stderr } = await millraceProcess(['serve', '--config', config(folder, { server: { port } })]);
  expect(code).toBe(1);
  expect(stderr).toContain(`Cannot listen on the address: 127.0.0.1:${port} (server.host and server.port, `);
});
