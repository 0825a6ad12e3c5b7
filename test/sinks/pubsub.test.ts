import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { PROJECT, startPubSubPeer } from '../support/pubsub-peer/peer.ts';
import type { PeerMessage } from '../support/pubsub-peer/topics.ts';
import { within } from '../support/until.ts';
import { idsAt, makeTopic, makeTopicSink, openTopic } from './broker-support.ts';
import { deliver, signal } from './support.ts';
import { listen } from '../support/listen.ts';

const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

const holding =
  (id: string) =>
  ({ attributes }: PeerMessage): boolean =>
    attributes['idempotency-key'] === id;

describe('pubsub sink', () => {
  it('makes one request of one batch', async () => {
    const { peer, sink } = await openTopic();
    await sink.send(deliver(1, sink.limits.batchCount), signal);
    expect(peer.requests.map(({ messages }) => messages.length)).toEqual([sink.limits.batchCount]);
    expect(peer.messages('events').every(({ orderingKey }) => orderingKey === '')).toBe(true);
  });

  it('with ordering makes one request a user, because a request takes one key', async () => {
    const { peer, sink } = await openTopic({ ordering: true });
    await sink.send(deliver(1, 70), signal);
    expect(peer.requests).toHaveLength(7);
    for (const { messages } of peer.requests) {
      expect(messages).toHaveLength(10);
      for (const { orderingKey, attributes } of messages) expect(orderingKey).toBe(attributes['user-id']);
    }
  });

  it.each(['never', 'always'])(
    'stays below the request limit with the largest batch and the longest attributes (compression %s)',
    async (compression) => {
      const { sink } = await openTopic({ compression, timeout: '20s' });
      const { batchCount, batchBytes } = sink.limits;
      const text = 'ü'.repeat(5000);
      const size = Math.floor(batchBytes / batchCount);
      const batch = Array.from({ length: batchCount }, (_, i) => ({
        event: contractEvent(i, {
          id: `${text}${i}`,
          type: text,
          team: text,
          user: text,
          clientUser: text,
          handling: { replayId: text, claimCheck: true },
          body: crypto.getRandomValues(Buffer.alloc(size)),
        }),
        destination: null,
      }));
      for (const result of await sink.send(batch, signal)) expect(result).toEqual({ status: 'delivered' });
    },
  );

  it('waits for a topic that does not exist, and says so', async () => {
    const { peer, sink } = await makeTopic({ topic: 'later' });
    onTestFinished(async () => {
      await sink.close(signal);
      await peer.stop();
    });
    await expect(sink.open(signal)).rejects.toThrow(/^topic later: it does not exist: .*NOT_FOUND/);
    peer.addTopic('later');
    await sink.open(signal);
    const [other] = await sink.send(deliver(1, 1, {}, 'never-made'), signal);
    expect(other).toMatchObject({
      status: 'retry',
      sink: true,
      reason: expect.stringMatching(/topics\/never-made: it does not exist/) as string,
    });
    expect(await sink.send(deliver(1, 1), signal)).toEqual([{ status: 'delivered' }]);
  });

  it('waits for an operator when the route or the config names no topic that could exist', async () => {
    const { peer, sink } = await openTopic({ topic: null });
    expect(await sink.send(deliver(1, 1), signal)).toMatchObject([
      { status: 'retry', sink: true, reason: expect.stringMatching(/names no topic/) as string },
    ]);
    expect(await sink.send(deliver(1, 1, {}, 'a b'), signal)).toMatchObject([
      { status: 'retry', sink: true, reason: expect.stringMatching(/"a b" is not a valid topic/) as string },
    ]);
    const path = `projects/${PROJECT}/topics/other`;
    expect(await sink.send(deliver(1, 1, {}, path), signal)).toEqual([{ status: 'delivered' }]);
    expect(idsAt(peer, 'other')).toEqual(['msg_1']);
  });

  it.each([PERMISSION_DENIED, UNAUTHENTICATED])('waits when it may not publish (status %i)', async (code) => {
    const { peer, sink } = await openTopic();
    peer.inject({ kind: 'status', code, times: 1 });
    expect(await sink.send(deliver(1, 2), signal)).toMatchObject([
      { status: 'retry', sink: true, reason: expect.stringMatching(/publishing denied/) as string },
      { status: 'retry', sink: true },
    ]);
  });

  it('looks for credentials again when it has found none', async () => {
    const key = join(await temporaryFolder(), 'key.json');
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', key);
    const peer = await startPubSubPeer({ topics: ['events'] });
    const { sink } = makeTopicSink(`https://localhost:${peer.port}`, { timeout: '5s' });
    onTestFinished(async () => {
      vi.unstubAllEnvs();
      await sink.close(signal);
      await peer.stop();
    });
    await expect(sink.open(signal)).rejects.toThrow(/key\.json/);
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const private_key = privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(key, JSON.stringify({ type: 'service_account', client_email: 'a@b.example', private_key }));
    // The peer knows no TLS: what fails now is the connection.
    await expect(sink.open(signal)).rejects.toThrow(/connection|UNAVAILABLE|DEADLINE|no answer/i);
  });

  it('does not hang on a far side that accepts connections and says nothing', async () => {
    const silent = createServer(() => undefined);
    const sockets = new Set<{ destroy(): void }>();
    silent.on('connection', (socket) => sockets.add(socket));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const port = await listen(silent);
    const { sink } = makeTopicSink(`127.0.0.1:${port}`, { timeout: '300ms' });
    await expect(sink.open(signal)).rejects.toThrow(/^topic events: /);
    const [result] = await sink.send(deliver(1, 1), signal);
    expect(result).toMatchObject({ status: 'retry', sink: true });
    await within('close', sink.close(signal));
  });

  it('sends as soon as the service is back, however often it was missed', async () => {
    const { peer, sink } = await openTopic({ timeout: '1s' });
    await peer.stop();
    for (let i = 0; i < 2; i += 1) {
      expect(await sink.send(deliver(1, 1), signal)).toMatchObject([{ status: 'retry', sink: true }]);
    }
    // The service is down at first: the send that is in flight when the service comes back is the one that gets through.
    const { sink: patient } = makeTopicSink(peer.endpoint, { timeout: '30s' });
    onTestFinished(() => patient.close(signal));
    await patient.send(deliver(1, 1), signal);
    const sending = patient.send(deliver(2, 1), signal);
    await peer.restart();
    expect(await within('the answer', sending)).toEqual([{ status: 'delivered' }]);
  });

  it('holds back what follows an event of the same user that has to be sent again', async () => {
    const { peer, sink } = await openTopic({ ordering: true });
    peer.inject({ kind: 'status', code: INVALID_ARGUMENT, holding: holding('msg_2') });
    peer.inject({ kind: 'status', code: UNAVAILABLE, holding: holding('msg_3') });
    const results = await sink.send(deliver(1, 5, { user: 'one' }), signal);
    expect(results.map(({ status }) => status)).toEqual(['delivered', 'refused', 'retry', 'retry', 'retry']);
    expect(results[1]).not.toHaveProperty('batch');
    expect(idsAt(peer)).toEqual(['msg_1']);
    expect(peer.requests.map(({ messages }) => messages.length)).toEqual([5, 1, 1, 1]);
  });

  it('finds an emulator by PUBSUB_EMULATOR_HOST, looks for no credentials, and lets the process end', async () => {
    const peer = await startPubSubPeer({ topics: ['events'] });
    onTestFinished(() => peer.stop());
    const SRC = join(import.meta.dirname, '../../src');
    const script = `
      import { parseOptions } from '${join(SRC, 'sinks/pubsub/config.ts')}';
      import { createSink } from '${join(SRC, 'sinks/pubsub/sink.ts')}';
      import { contractEvent } from '${join(SRC, 'sinks/contract-events.ts')}';
      const options = parseOptions({ project: '${PROJECT}', topic: 'events' });
      const sink = createSink(options, { name: 'topics', log: console });
      const { signal } = new AbortController();
      await sink.open(signal);
      console.log(JSON.stringify(await sink.send([{ event: contractEvent(1), destination: null }], signal)));
      await sink.close(signal);`;
    const env = { ...process.env, PUBSUB_EMULATOR_HOST: peer.endpoint, HOME: '/nonexistent' };
    const args = ['--input-type=module', '--eval', script];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env, timeout: 120_000 });
    expect(stdout.trim()).toBe('[{"status":"delivered"}]');
    // Above all no MetadataLookupWarning.
    expect(stderr).toBe('');
    expect(idsAt(peer)).toEqual(['msg_1']);
  });
});
