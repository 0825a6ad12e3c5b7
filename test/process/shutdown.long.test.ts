import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Agent } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { Place } from '../support/place.ts';
import { expectConserved, expectOnce, expectWhole } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { until } from '../support/until.ts';

const GATED = join(import.meta.dirname, 'gated-sink.ts');
const DONE = { code: 0, signal: null };
const BUSY = expect.objectContaining({ sink: 'gated', inFlight: 1 }) as unknown;

/** A receiver with an archive and a gated sink that has begun with its first batch and waits. */
async function amidABatch(deadline: string, options: object = {}) {
  const place = await Place.make((folder) => ({
    sinks: {
      archive: { type: 'files', path: join(folder, 'archive') },
      gated: { type: GATED, folder, ...options },
    },
    shutdown: { deadline },
  }));
  const receiver = await place.startProcess();
  const acknowledged = await receiver.send(40);
  await until('the first batch', () => existsSync(place.at('begun')));
  return { place, acknowledged, receiver };
}

const openGate = (place: Place): void => writeFileSync(place.at('gate'), '');

const deliveredIds = (place: Place): string[] =>
  existsSync(place.at('delivered'))
    ? readFileSync(place.at('delivered'), 'utf8').split('\n').slice(0, -1)
    : [];

const ready = async (receiver: ReceiverProcess): Promise<number> => (await receiver.ask('/readyz')).status;
const notReady = (receiver: ReceiverProcess) =>
  until('readiness to be off', async () => (await ready(receiver)) === 503);

/** Waits until new connections are refused. */
async function closed({ url }: ReceiverProcess): Promise<void> {
  const { port, hostname } = new URL(url);
  await until(
    'new connections to be refused',
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect({ port: Number(port), host: hostname });
        socket.once('connect', () => resolve(!socket.destroy()));
        socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
      }),
  );
}

/** Sends SIGTERM again and again until it has ended. */
async function insisted(receiver: ReceiverProcess): Promise<void> {
  // One that comes at the same moment counts as the first, so that a signal to the process and its group is one.
  let over = false;
  void receiver.exited.then(() => (over = true));
  await until('the end', () => {
    receiver.signal('SIGTERM');
    return over;
  });
  expect(await receiver.exited).toEqual({ code: 1, signal: null });
}

type Setting = Pick<Awaited<ReturnType<typeof amidABatch>>, 'place' | 'acknowledged'>;

async function expectAllAfterRestart({ place, acknowledged }: Setting): Promise<void> {
  openGate(place);
  place.edit((config) => (config.shutdown.deadline = '50s'));
  const receiver = await place.startProcess();
  await receiver.drained();
  await receiver.stop();
  expect(new Set(deliveredIds(place))).toEqual(new Set(acknowledged.keys()));
  expectConserved(await place.archived(), acknowledged);
  await expectWhole(place.at('archive'));
}

test('fault 09: SIGTERM amid a batch: readiness off, nothing accepted, all flushed, exit 0', async () => {
  const { place, acknowledged, receiver } = await amidABatch('50s');
  expect(await ready(receiver)).toBe(200);
  receiver.signal('SIGTERM');
  await notReady(receiver);
  await closed(receiver);
  // An operator can still see what it waits for.
  expect((await receiver.status()).sinks).toContainEqual(BUSY);

  openGate(place);
  expect(await receiver.exited).toEqual(DONE);
  expect(receiver.logLines().at(-1)).toMatchObject({ msg: 'stopped' });
  expect(deliveredIds(place).toSorted()).toEqual([...acknowledged.keys()].toSorted());
  const found = await place.archived();
  expectConserved(found, acknowledged);
  expectOnce(found);
  await expectWhole(place.at('archive'));
});

test('fault 09: a request that has begun is answered before the end, and its connection closed', async () => {
  const { place, acknowledged, receiver } = await amidABatch('50s');
  const dispatcher = new Agent({ connections: 1 });
  onTestFinished(() => dispatcher.destroy());
  const { id, body } = madeUpEvent(0);
  const { headers } = await receiver.post(body, { id, dispatcher });
  acknowledged.set(id, body);
  expect(headers['connection']).not.toBe('close');

  receiver.signal('SIGTERM');
  const late = madeUpEvent(1);
  await until('an answer that is no 2xx, or none', async () => {
    const answer = await receiver.post(late.body, { id: late.id, dispatcher }).catch(() => null);
    if (answer !== null && answer.status < 300) acknowledged.set(late.id, late.body);
    return answer === null || answer.status === 503;
  });
  openGate(place);
  expect(await receiver.exited).toEqual(DONE);
  expectConserved(await place.archived(), acknowledged);
});

test('fault 09: SIGTERM and SIGINT at once are one', async () => {
  const { place, receiver } = await amidABatch('50s');
  receiver.signal('SIGTERM');
  receiver.signal('SIGINT');
  await notReady(receiver);
  openGate(place);
  expect(await receiver.exited).toEqual(DONE);
});

test('fault 10: a second SIGTERM ends it at once; the next start delivers the rest', async () => {
  const { receiver, ...setting } = await amidABatch('50s');
  receiver.signal('SIGTERM');
  await notReady(receiver);
  await insisted(receiver);
  expect(deliveredIds(setting.place)).toEqual([]);
  await expectAllAfterRestart(setting);
});

test('fault 10: past shutdown.deadline it ends although a sink hangs; the next start delivers the rest', async () => {
  const { receiver, ...setting } = await amidABatch('200ms');
  expect(await receiver.kill('SIGTERM')).toEqual(DONE);
  expect(receiver.stderr).toContain('shutdown.deadline passed');
  expect(deliveredIds(setting.place)).toEqual([]);
  await expectAllAfterRestart(setting);
});

test('fault 62: SIGTERM while a reload exchanges a sink waits for the reload: no event comes twice', async () => {
  const { receiver, ...setting } = await amidABatch('50s', { answersLate: true });
  const { place } = setting;
  place.edit(({ sinks }) => (sinks.gated.takes = 1));
  receiver.signal('SIGHUP');
  await until('the sink to drain', () => receiver.logLines().some(({ msg }) => msg === 'sink draining'));
  receiver.signal('SIGTERM');
  await closed(receiver);
  expect((await receiver.status()).sinks).toContainEqual(BUSY);
  openGate(place);
  expect(await receiver.exited).toEqual(DONE);
  await expectAllAfterRestart(setting);
  const delivered = deliveredIds(place);
  expect(delivered.filter((id, at) => delivered.indexOf(id) !== at)).toEqual([]);
});

test('fault 62: past shutdown.deadline it ends although a reload hangs; the next start delivers the rest', async () => {
  const { receiver, ...setting } = await amidABatch('200ms');
  setting.place.edit(({ sinks }) => (sinks.gated.opens = 'at the gate'));
  receiver.signal('SIGHUP');
  await until('the changed sink to be opened', () => existsSync(setting.place.at('opening')));
  expect(await receiver.kill('SIGTERM')).toEqual(DONE);
  await expectAllAfterRestart(setting);
});

/** A receiver whose start waits for its sink. */
async function amidItsStart(deadline: string): Promise<ReceiverProcess> {
  const place = await Place.make((folder) => ({
    sinks: { gated: { type: GATED, folder, opens: 'at the gate' } },
    shutdown: { deadline },
  }));
  const receiver = new ReceiverProcess(place.config);
  await until('the sink to be opened', () => existsSync(place.at('opening')));
  return receiver;
}

test('fault 62: SIGTERM amid a start that hangs ends it by shutdown.deadline', async () => {
  const receiver = await amidItsStart('200ms');
  expect(await receiver.kill('SIGTERM')).toEqual(DONE);
  expect(receiver.logLines().at(-1)?.['msg']).toContain('shutdown.deadline passed before the start was over');
});

test('fault 62: a second SIGTERM amid the start ends it at once', async () => {
  const receiver = await amidItsStart('50s');
  await insisted(receiver);
  expect(receiver.logLines().map(({ msg }) => msg)).not.toContain('listening');
});

test('fault 62: SIGHUP until the last moment of a stop does not replace its exit code', async () => {
  const receiver = await (await Place.make()).startProcess();
  receiver.signal('SIGTERM');
  while (receiver.running) {
    receiver.signal('SIGHUP');
    await nextTurn();
  }
  expect(await receiver.exited).toEqual(DONE);
});
