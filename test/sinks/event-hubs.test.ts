import { EventHubConsumerClient, type ReceivedEventData } from '@azure/event-hubs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import type { AmqpPeer } from '../support/amqp-peer/peer.ts';
import { until } from '../support/until.ts';
import { bodyOf, idsAt, makeSubject, openSubject } from './event-hubs-support.ts';
import { deliver, signal } from './support.ts';

/** Reads a hub from its beginning with the vendor's own consumer until `count` messages have come. */
async function consume(
  { connectionString }: AmqpPeer,
  hub: string,
  count: number,
): Promise<ReceivedEventData[]> {
  const client = new EventHubConsumerClient('$Default', connectionString, hub);
  const received: ReceivedEventData[] = [];
  await new Promise<void>((resolve, reject) => {
    client.subscribe(
      {
        processEvents: (events) => {
          received.push(...events);
          if (received.length >= count) resolve();
          return Promise.resolve();
        },
        processError: async (error) => reject(error),
      },
      { startPosition: { offset: '-1' }, skipParsingBodyAsJson: true },
    );
  });
  await client.close();
  return received;
}

describe('event-hubs sink', () => {
  it('is read by an independent consumer, byte for byte, each user in order and in one partition', async () => {
    const { peer, sink } = await openSubject();
    const bodies = [...awkwardBodies(), ...awkwardBodies(), ...awkwardBodies()];
    const events = bodies.map((body, seq) => contractEvent(seq, { body }));
    const results = await sink.send(
      events.map((event) => ({ event, destination: null })),
      signal,
    );
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['delivered']));
    const received = await consume(peer, 'events', events.length);
    const byId = new Map(received.map((each) => [each.properties?.['idempotency-key'], each]));
    for (const { id, body, user } of events) {
      const found = byId.get(id);
      expect(found?.partitionKey).toBe(user);
      expect(bodyOf({ body: found?.body, properties: found?.properties ?? {} }).equals(body)).toBe(true);
    }
    for (let user = 0; user < 7; user += 1) {
      const own = peer.messages('events').filter(({ partitionKey }) => partitionKey === `user-${user}`);
      const ids = own.map(({ properties }) => Number(properties['idempotency-key']?.slice('msg_'.length)));
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
      expect(new Set(own.map(({ partition }) => partition)).size).toBe(1);
    }
  });

  it('sends the events of a user in as few messages as hold them', async () => {
    const { peer, sink } = await openSubject({ maxEventBytes: 4096, compression: 'never' });
    const body = Buffer.alloc(1500, 'x');
    const results = await sink.send(deliver(1, 10, { user: 'one', body }), signal);
    expect(results.every(({ status }) => status === 'delivered')).toBe(true);
    expect(idsAt(peer)).toEqual(Array.from({ length: 10 }, (_, i) => `msg_${i + 1}`));
  });

  it('refuses here what is larger than the hub takes, and says so before anything of it is sent', async () => {
    const { peer, sink } = await openSubject({ compression: 'never' }, { maxMessageBytes: 10_000 });
    const [small, large, next] = [100, 10_000, 100].map((size, seq) => ({
      event: contractEvent(seq, { user: 'one', body: Buffer.alloc(size) }),
      destination: null,
    }));
    const results = await sink.send([small!, large!, next!], signal);
    expect(results).toMatchObject([
      { status: 'delivered' },
      { status: 'refused', code: 'too_large' },
      { status: 'delivered' },
    ]);
    expect(results[1]).not.toHaveProperty('batch');
    expect(idsAt(peer)).toEqual(['msg_0', 'msg_2']);
  });

  it('goes by its own limit where the hub names none', async () => {
    const options = { compression: 'never', maxEventBytes: '64KiB' };
    const { peer, sink } = await openSubject(options, { maxMessageBytes: 0 });
    const batch = [100, 60_000, 65_536, 60_000].map((size, seq) => ({
      event: contractEvent(seq, { user: 'one', body: Buffer.alloc(size) }),
      destination: null,
    }));
    const results = await sink.send(batch, signal);
    expect(results.map((each) => (each.status === 'refused' ? each.code : each.status))).toEqual([
      'delivered',
      'delivered',
      'too_large',
      'delivered',
    ]);
    expect(idsAt(peer)).toEqual(['msg_0', 'msg_1', 'msg_3']);
  });

  it('takes a body far above the limit that fits once it is compressed', async () => {
    const { peer, sink } = await openSubject({}, { maxMessageBytes: 10_000 });
    const body = Buffer.alloc(1_000_000, 'x');
    expect(await sink.send(deliver(1, 1, { body }), signal)).toEqual([{ status: 'delivered' }]);
    expect(bodyOf(peer.messages('events')[0]!).equals(body)).toBe(true);
  });

  it('needs no default hub when every route names one, and opens each when it is needed', async () => {
    const { peer, sink } = await openSubject({ hub: undefined });
    await sink.open(signal);
    expect(await sink.send(deliver(1, 2, {}, 'other'), signal)).toEqual([
      { status: 'delivered' },
      { status: 'delivered' },
    ]);
    expect(idsAt(peer, 'other')).toHaveLength(2);
    expect(await sink.send(deliver(3, 1), signal)).toMatchObject([
      { status: 'retry', reason: /names no event hub/ },
    ]);
  });

  it('does not open when the default hub is missing, the key is refused or nobody listens', async () => {
    const missing = await openFailure({ hub: 'gone' });
    expect(missing).toMatch(/event hub gone: it does not exist/);
    const refused = await openFailure({}, (peer) => void peer.inject({ kind: 'unauthorized' }));
    expect(refused).toMatch(/event hub events: access denied; check the key/);
    const down = await openFailure({}, (peer) => peer.stop());
    expect(down).toMatch(/event hub events: .*ECONNREFUSED/);
    for (const message of [missing, refused, down]) expect(message).not.toMatch(/SharedAccessKey=/);
  });

  it('waits for what is on the way when it is closed', async () => {
    const { peer, sink } = await makeSubject();
    await sink.open(signal);
    const slow = peer.inject({ kind: 'latency', ms: 50 });
    const sent = sink.send(deliver(1, 20), signal);
    await slow.struck;
    await sink.close(signal);
    expect((await sent).every(({ status }) => status === 'delivered')).toBe(true);
    await peer.stop();
  });

  it('gives up at once when told to, and claims nothing', async () => {
    const { peer, sink } = await openSubject({ timeout: '60s' });
    const { struck } = peer.inject({ kind: 'hang' });
    const stop = new AbortController();
    const sent = sink.send(deliver(1, 20), stop.signal);
    await struck;
    stop.abort();
    for (const result of await sent) expect(result).toMatchObject({ status: 'retry' });
  });

  it('replaces a connection that does not answer any more', async () => {
    const { peer, sink, context } = await openSubject({ timeout: '1s' });
    const { lift } = peer.inject({ kind: 'hang' });
    const results = await sink.send(deliver(1, 7), signal);
    expect(new Set(results)).toHaveLength(7);
    for (const result of results) expect(result).toMatchObject({ status: 'retry', sink: true });
    expect(context.lines).toMatchObject([{ level: 'warn', fields: { hub: 'events' } }]);
    lift();
    // On a busy machine a connection, too, may take longer than that.
    await until('the new one to take them', async () =>
      (await sink.send(deliver(1, 7), signal)).every(({ status }) => status === 'delivered'),
    );
    expect(new Set(idsAt(peer))).toHaveLength(7);
  });
});

async function openFailure(
  options: object,
  prepare: (peer: AmqpPeer) => Promise<void> | void = () => undefined,
): Promise<string> {
  const { peer, sink } = await makeSubject(options);
  onTestFinished(() => peer.stop());
  await prepare(peer);
  const error: unknown = await sink.open(signal).catch((thrown: unknown) => thrown);
  await sink.close(signal);
  return error instanceof Error ? error.message : 'it opened';
}
