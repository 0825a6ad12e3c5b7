import { EventHubConsumerClient, type ReceivedEventData } from '@azure/event-hubs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { awkwardBodies, contractEvent } from '../../src/sinks/contract-events.ts';
import type { AmqpPeer } from '../support/amqp-peer/peer.ts';
import { arrivedAt, idsAt, makeHub, openHub, unpacked } from './broker-support.ts';
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
    const { peer, sink } = await openHub();
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
      const encoding = found?.properties?.['content-encoding'];
      expect(unpacked(found?.body as Buffer, encoding).equals(body)).toBe(true);
    }
    for (let user = 0; user < 7; user += 1) {
      const own = peer.messages('events').filter(({ partitionKey }) => partitionKey === `user-${user}`);
      const ids = own.map(({ properties }) => Number(properties['idempotency-key']?.slice('msg_'.length)));
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
      expect(new Set(own.map(({ partition }) => partition)).size).toBe(1);
    }
  });

  it.each([
    // The hub says what it takes, or names nothing.
    [10_000, '1MiB', [100, 10_000, 100]],
    [0, '64KiB', [60_000, 65_536, 60_000]],
  ])(
    'refuses here what is larger than the hub (%i) or its own limit (%s) allows, before anything of it is sent',
    async (maxMessageBytes, maxEventBytes, sizes) => {
      const { peer, sink } = await openHub({ compression: 'never', maxEventBytes }, { maxMessageBytes });
      const batch = sizes.flatMap((size, seq) => deliver(seq, 1, { user: 'one', body: Buffer.alloc(size) }));
      const reason = expect.any(String) as string;
      expect(await sink.send(batch, signal)).toEqual([
        { status: 'delivered' },
        { status: 'refused', code: 'too_large', reason },
        { status: 'delivered' },
      ]);
      expect(idsAt(peer)).toEqual(['msg_0', 'msg_2']);
    },
  );

  it('accepts a body far above the limit that is small enough after compression', async () => {
    const { peer, sink } = await openHub({}, { maxMessageBytes: 10_000 });
    const body = Buffer.alloc(1_000_000, 'x');
    expect(await sink.send(deliver(1, 1, { body }), signal)).toEqual([{ status: 'delivered' }]);
    expect(arrivedAt(peer, 'events')[0]?.body.equals(body)).toBe(true);
  });

  it('needs no default hub when every route names one, and opens each when it is needed', async () => {
    const { peer, sink } = await openHub({ hub: undefined });
    await sink.open(signal);
    expect(await sink.send(deliver(1, 2, {}, 'other'), signal)).toEqual([
      { status: 'delivered' },
      { status: 'delivered' },
    ]);
    expect(idsAt(peer, 'other')).toHaveLength(2);
    expect(await sink.send(deliver(3, 1), signal)).toMatchObject([
      { status: 'retry', reason: expect.stringMatching(/names no event hub/) as string },
    ]);
  });

  it('does not open when the default hub is missing, the key is refused or the service is down', async () => {
    const missing = await openFailure({ hub: 'gone' });
    expect(missing).toMatch(/event hub gone: it does not exist/);
    const refused = await openFailure({}, (peer) => void peer.inject({ kind: 'unauthorized' }));
    expect(refused).toMatch(/event hub events: access denied; check the key/);
    const down = await openFailure({}, (peer) => peer.stop());
    expect(down).toMatch(/event hub events: .*ECONNREFUSED/);
    for (const message of [missing, refused, down]) expect(message).not.toMatch(/SharedAccessKey=/);
  });
});

async function openFailure(
  options: object,
  prepare: (peer: AmqpPeer) => Promise<void> | void = () => undefined,
): Promise<string> {
  const { peer, sink } = await makeHub(options);
  onTestFinished(() => peer.stop());
  await prepare(peer);
  const error: unknown = await sink.open(signal).catch((thrown: unknown) => thrown);
  await sink.close(signal);
  return error instanceof Error ? error.message : 'it opened';
}
