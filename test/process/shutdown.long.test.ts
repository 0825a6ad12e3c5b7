import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const GATED = fileURLToPath(new URL('./gated-sink.ts', import.meta.url));
const EVENTS = 40;

interface Setting {
  readonly folder: string;
  readonly archive: string;
  readonly config: string;
  /** Bodies by id, all acknowledged. */
  readonly acknowledged: Map<string, Buffer>;
  readonly receiver: ReceiverProcess;
}

/** A receiver with an archive and a gated sink that has begun with its first batch and waits. */
async function amidABatch(deadline: string, options: object = {}): Promise<Setting> {
  const folder = await temporaryFolder();
  const archive = join(folder, 'archive');
  const config = writeConfig(folder, {
    sinks: { archive: { type: 'files', path: archive }, gated: { type: GATED, folder, ...options } },
    routes: [{ match: '*', to: ['gated', 'archive'] }],
    shutdown: { deadline },
  });
  const receiver = await ReceiverProcess.start(config);
  const acknowledged = new Map<string, Buffer>();
  for (let n = 0; n < EVENTS; n += 1) {
    const { id, body } = madeUpEvent(n);
    expect(await postSigned(receiver.url, body, { id })).toMatchObject({ status: 202 });
    acknowledged.set(id, body);
  }
  await until('the first batch', () => existsSync(join(folder, 'begun')));
  return { folder, archive, config, acknowledged, receiver };
}

function deliveredIds(folder: string): string[] {
  const file = join(folder, 'delivered');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
}

async function readiness({ adminUrl }: ReceiverProcess): Promise<number> {
  const { statusCode, body } = await request(`${adminUrl}/readyz`);
  await body.dump();
  return statusCode;
}

/** The code of the error that a new connection ends in, or null when it is accepted. */
function refusal(url: string): Promise<string | null> {
  const { port, hostname } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname });
    socket.once('connect', () => {
      socket.destroy();
      resolve(null);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  });
}

test('fault 09: SIGTERM amid a batch: readiness off, nothing accepted, all flushed, exit 0', async () => {
  const { folder, archive, acknowledged, receiver } = await amidABatch('50s');
  expect(await readiness(receiver)).toBe(200);
  receiver.signal('SIGTERM');
  await until('readiness to be off', async () => (await readiness(receiver)) === 503);
  await until('new connections to be refused', async () => (await refusal(receiver.url)) === 'ECONNREFUSED');
  // An operator can still see what it waits for.
  const { sinks } = await receiver.status();
  expect(sinks).toContainEqual(expect.objectContaining({ sink: 'gated', inFlight: 1 }));

  writeFileSync(join(folder, 'gate'), '');
  expect(await receiver.exited).toEqual({ code: 0, signal: null });
  expect(receiver.logLines().at(-1)).toMatchObject({ msg: 'stopped' });
  expect(deliveredIds(folder).toSorted()).toEqual([...acknowledged.keys()].toSorted());
  const found = await readBack(archive);
  expectConserved(found, acknowledged);
  expectOnce(found);
  await expectWhole(archive);
});

test('fault 09: a request that has begun is answered before the end, and its connection closed', async () => {
  const { folder, archive, acknowledged, receiver } = await amidABatch('50s');
  const agent = new Agent({ connections: 1 });
  onTestFinished(() => agent.destroy());
  const { id, body } = madeUpEvent(0);
  const { headers } = await postSigned(receiver.url, body, { id, dispatcher: agent });
  acknowledged.set(id, body);
  expect(headers['connection']).not.toBe('close');

  receiver.signal('SIGTERM');
  const late = madeUpEvent(1);
  await until('an answer that is no 2xx, or none', async () => {
    const answer = await postSigned(receiver.url, late.body, { id: late.id, dispatcher: agent }).catch(
      () => null,
    );
    if (answer !== null && answer.status < 300) acknowledged.set(late.id, late.body);
    return answer === null || answer.status === 503;
  });
  writeFileSync(join(folder, 'gate'), '');
  expect(await receiver.exited).toEqual({ code: 0, signal: null });
  expectConserved(await readBack(archive), acknowledged);
});

test('fault 10: a second SIGTERM ends it at once; the next start delivers the rest', async () => {
  const { folder, archive, config, acknowledged, receiver } = await amidABatch('50s');
  receiver.signal('SIGTERM');
  await until('readiness to be off', async () => (await readiness(receiver)) === 503);
  // One that comes at the same moment counts as the first, so that a signal to the process and its group is one.
  let over = false;
  void receiver.exited.then(() => (over = true));
  await until('the end', () => {
    receiver.signal('SIGTERM');
    return over;
  });
  expect(await receiver.exited).toEqual({ code: 1, signal: null });
  expect(deliveredIds(folder)).toEqual([]);
  await expectAllAfterRestart({ folder, archive, config, acknowledged });
});

test('fault 10: past shutdown.deadline it ends although a sink hangs; the next start delivers the rest', async () => {
  const { folder, archive, config, acknowledged, receiver } = await amidABatch('200ms');
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(receiver.stderr).toContain('shutdown.deadline passed');
  expect(deliveredIds(folder)).toEqual([]);
  await expectAllAfterRestart({ folder, archive, config, acknowledged });
});

async function expectAllAfterRestart(setting: Omit<Setting, 'receiver'>): Promise<void> {
  const { folder, archive, config, acknowledged } = setting;
  writeFileSync(join(folder, 'gate'), '');
  const file = JSON.parse(readFileSync(config, 'utf8')) as object;
  writeFileSync(config, JSON.stringify({ ...file, shutdown: { deadline: '50s' } }));
  const receiver = await ReceiverProcess.start(config);
  await receiver.drained();
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(new Set(deliveredIds(folder))).toEqual(new Set(acknowledged.keys()));
  expectConserved(await readBack(archive), acknowledged);
  await expectWhole(archive);
}

test('fault 62: SIGTERM while a reload exchanges a sink waits for the reload: no event comes twice', async () => {
  const scene = await amidABatch('50s', { answersLate: true });
  const { folder, archive, config, acknowledged, receiver } = scene;
  const file = JSON.parse(readFileSync(config, 'utf8')) as { sinks: { gated: object } };
  file.sinks.gated = { ...file.sinks.gated, changed: true };
  writeFileSync(config, JSON.stringify(file));
  receiver.signal('SIGHUP');
  await until('the sink to drain', () => receiver.logLines().some(({ msg }) => msg === 'sink draining'));
  receiver.signal('SIGTERM');
  await until('new connections to be refused', async () => (await refusal(receiver.url)) === 'ECONNREFUSED');
  expect((await receiver.status()).sinks).toContainEqual(
    expect.objectContaining({ sink: 'gated', inFlight: 1 }),
  );
  writeFileSync(join(folder, 'gate'), '');
  expect(await receiver.exited).toEqual({ code: 0, signal: null });
  await expectAllAfterRestart({ folder, archive, config, acknowledged });
  const delivered = deliveredIds(folder);
  expect(delivered.filter((id, at) => delivered.indexOf(id) !== at)).toEqual([]);
});

test('fault 62: past shutdown.deadline it ends although a reload hangs; the next start delivers the rest', async () => {
  const { folder, archive, config, acknowledged, receiver } = await amidABatch('200ms');
  const file = JSON.parse(readFileSync(config, 'utf8')) as { sinks: { gated: object } };
  file.sinks.gated = { ...file.sinks.gated, holdOpen: true };
  writeFileSync(config, JSON.stringify(file));
  receiver.signal('SIGHUP');
  await until('the changed sink to be opened', () => existsSync(join(folder, 'opening')));
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  await expectAllAfterRestart({ folder, archive, config, acknowledged });
});

/** A receiver whose start waits for its sink. */
async function amidItsStart(deadline: string): Promise<{ config: string; receiver: ReceiverProcess }> {
  const folder = await temporaryFolder();
  const sinks = { gated: { type: GATED, folder, holdOpen: true } };
  const config = writeConfig(folder, { sinks, shutdown: { deadline } });
  const receiver = new ReceiverProcess(config);
  await until('the sink to be opened', () => existsSync(join(folder, 'opening')));
  return { config, receiver };
}

test('fault 62: SIGTERM amid a start that hangs ends it by shutdown.deadline', async () => {
  const { receiver } = await amidItsStart('200ms');
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(receiver.logLines().at(-1)?.['msg']).toContain('shutdown.deadline passed before the start was over');
});

test('fault 62: a second SIGTERM amid the start ends it at once', async () => {
  const { receiver } = await amidItsStart('50s');
  let over = false;
  void receiver.exited.then(() => (over = true));
  await until('the end', () => {
    receiver.signal('SIGTERM');
    return over;
  });
  expect(await receiver.exited).toEqual({ code: 1, signal: null });
  expect(receiver.logLines().map(({ msg }) => msg)).not.toContain('listening');
});

test('fault 62: SIGHUP until the last moment of a stop does not replace its exit code', async () => {
  const receiver = await ReceiverProcess.start(writeConfig(await temporaryFolder()));
  receiver.signal('SIGTERM');
  while (receiver.running) {
    receiver.signal('SIGHUP');
    await nextTurn();
  }
  expect(await receiver.exited).toEqual({ code: 0, signal: null });
});

test('fault 09: SIGTERM twice at once is SIGTERM', async () => {
  const { folder, archive, acknowledged, receiver } = await amidABatch('50s');
  receiver.signal('SIGTERM');
  receiver.signal('SIGINT');
  await until('readiness to be off', async () => (await readiness(receiver)) === 503);
  writeFileSync(join(folder, 'gate'), '');
  expect(await receiver.exited).toEqual({ code: 0, signal: null });
  expectConserved(await readBack(archive), acknowledged);
});

test('SIGTERM while nothing is going on ends it with 0, as SIGINT does', async () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const receiver = await ReceiverProcess.start(writeConfig(await temporaryFolder()));
    expect(await receiver.kill(signal)).toEqual({ code: 0, signal: null });
  }
});
