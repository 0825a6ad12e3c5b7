import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { writeArchive } from '../replay/made-up-archive.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import type { PeerMessage } from '../support/amqp-peer/hub.ts';
import { temporaryFolder } from '../support/folders.ts';
import { childEnvironment, MAIN, millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { runCount } from '../support/run-count.ts';
import { postSigned } from '../support/signed-events.ts';
import { until, within } from '../support/until.ts';

// MILLRACE_REPLAY_EVENTS=200000 for the long run.
const EVENTS = runCount({ long: 20_000 });
const FILES = 10;
const TIMEOUT = 600_000 + EVENTS * 2;

interface Summary {
  readonly ok: boolean;
  readonly complete: boolean;
  readonly replay_id: string;
  readonly read: number;
  readonly selected: number;
  readonly targets: Readonly<Record<string, number>>;
}

function summaryOf(stdout: string): Summary {
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Summary;
}

async function startPeer(): Promise<AmqpPeer> {
  const peer = await startAmqpPeer({ hubs: ['events'] });
  onTestFinished(() => peer.stop());
  return peer;
}

function configFor(folder: string, peer: AmqpPeer): string {
  const hubs = { type: 'event-hubs', connectionString: peer.connectionString, hub: 'events' };
  return writeConfig(folder, { sinks: { archive: { type: 'files', path: join(folder, 'archive') }, hubs } });
}

/** Runs the command and kills it with -9 once something has come. */
async function killedOnce(arrived: () => Promise<unknown>, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [MAIN, ...args], { env: childEnvironment(), stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  await within('messages of the replay', Promise.race([arrived(), exited]), TIMEOUT);
  child.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
}

/** How many events a replay has noted as done. */
function selectedIn(state: string): number {
  const file = join(state, 'state.json');
  if (!existsSync(file)) return 0;
  return (JSON.parse(readFileSync(file, 'utf8')) as { counts: Summary }).counts.selected;
}

function bodyOf({ body, properties }: PeerMessage): Buffer {
  return properties['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
}

/** Every expected event is there with its own id and bytes, and nothing else is. */
function expectAll(messages: readonly PeerMessage[], expected: readonly Event[]): void {
  const byId = new Map(messages.map((message) => [message.properties['idempotency-key'] ?? '', message]));
  const wrong: string[] = [];
  for (const { id, type, user, body } of expected) {
    const message = byId.get(id);
    byId.delete(id);
    if (message === undefined) wrong.push(`${id}: missing`);
    else if (!bodyOf(message).equals(body)) wrong.push(`${id}: other bytes`);
    else if (message.properties['event-type'] !== type || message.partitionKey !== user) {
      wrong.push(`${id}: other metadata`);
    }
  }
  for (const id of byId.keys()) wrong.push(`${id}: not asked for`);
  expect(wrong.slice(0, 20), `of ${expected.length} expected`).toEqual([]);
}

test(
  `${EVENTS} archived events into Event Hubs, kill -9 in the middle, --resume: every selected id, none besides`,
  { timeout: TIMEOUT },
  async () => {
    const folder = await temporaryFolder();
    const source = join(folder, 'source');
    const events = writeArchive(source, { files: FILES, each: EVENTS / FILES });
    const selected = events.filter(({ type }) => type.startsWith('daily.') || type.startsWith('lab'));
    const peer = await startPeer();
    const config = configFor(folder, peer);
    const state = join(folder, 'state');
    const args = ['replay', source, '--to', 'hubs', '--type', 'daily.', '--type', 'lab'];
    args.push('--config', config, '--state', state, '--json');

    // So slow that the kill comes in the midst of it, and that something was noted before.
    const rate = String(Math.ceil(selected.length / 5));
    const half = (): Promise<void> => peer.received('events', Math.floor(selected.length / 2));
    await killedOnce(half, [...args, '--rate', rate]);
    const before = peer.taken('events').count;
    expect(before).toBeLessThan(selected.length);
    const ended = await millrace([...args, '--resume']);
    expect({ code: ended.code, stderr: ended.stderr }).toMatchObject({ code: 0 });

    const summary = summaryOf(ended.stdout);
    expect(summary).toMatchObject({ ok: true, complete: true, read: EVENTS, selected: selected.length });
    expect(summary.targets).toEqual({ hubs: selected.length });
    const messages = peer.messages('events');
    expectAll(messages, selected);
    expect(new Set(messages.map(({ properties }) => properties['replay-id']))).toEqual(
      new Set([summary.replay_id]),
    );
    // It continued where it was: what was on its way came again, not all that had been there.
    expect(messages.length - selected.length).toBeLessThan(before);
    expect(existsSync(state)).toBe(false);
  },
);

/** One event after the other, each after the answer to the one before, until it is stopped. */
function liveTraffic(url: string): { stop(): Promise<string[]> } {
  const acknowledged: string[] = [];
  const over = new AbortController();
  const sending = (async () => {
    for (let n = 0; !over.signal.aborted; n += 1) {
      const { id, body } = madeUpEvent(n);
      expect((await postSigned(url, body, { id })).status).toBe(202);
      acknowledged.push(id);
    }
  })();
  return {
    stop: async () => {
      over.abort();
      await sending;
      return acknowledged;
    },
  };
}

test('fault 33: during live traffic, twice, interrupted: marked, rate-limited, same ids, resumes', async () => {
  const folder = await temporaryFolder();
  const source = join(folder, 'source');
  const events = writeArchive(source, { files: 3, each: 200 });
  const peer = await startPeer();
  const config = configFor(folder, peer);
  const receiver = await Receiver.start(config);
  const live = liveTraffic(receiver.url);
  const args = ['replay', source, '--routes', '--sink', 'hubs', '--config', config, '--json'];
  const ids: string[] = [];
  for (const name of ['first', 'second']) {
    const own = [...args, '--state', join(folder, name)];
    const some = (): Promise<unknown> => until('something noted', () => selectedIn(join(folder, name)) > 0);
    await killedOnce(some, [...own, '--rate', '100']);
    const left = events.length - selectedIn(join(folder, name));
    const started = performance.now();
    const ended = await millrace([...own, '--rate', '600', '--resume']);
    expect({ code: ended.code, stderr: ended.stderr }).toMatchObject({ code: 0 });
    const summary = summaryOf(ended.stdout);
    expect(summary).toMatchObject({ ok: true, selected: events.length });
    // Not faster than it may be; a tenth of a second may be caught up on.
    expect(performance.now() - started).toBeGreaterThan(((left - 60) / 600) * 1000);
    ids.push(summary.replay_id);
  }
  const acknowledged = await live.stop();
  await receiver.drained();
  expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });

  const messages = peer.messages('events');
  expect(new Set(ids).size).toBe(2);
  for (const replayId of ids) {
    expectAll(
      messages.filter(({ properties }) => properties['replay-id'] === replayId),
      events,
    );
  }
  const unmarked = messages.filter(({ properties }) => properties['replay-id'] === undefined);
  const ofLive = new Set(unmarked.map(({ properties }) => properties['idempotency-key']));
  expect(acknowledged.length).toBeGreaterThan(0);
  expect(acknowledged.filter((id) => !ofLive.has(id))).toEqual([]);
});
