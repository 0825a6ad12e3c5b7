import { EventHubProducerClient } from '@azure/event-hubs';
import { expect, it, onTestFinished } from 'vitest';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';

it.each([
  ['first', ['poison', 'one', 'two']],
  ['in the middle', ['one', 'two', 'poison', 'three']],
  ['last', ['one', 'two', 'poison']],
])(
  'the peer of these tests refuses no message but the one it does not take (%s of a turn)',
  async (_, bodies) => {
    const peer = await startAmqpPeer({ hubs: ['events'] });
    const retryOptions = { maxRetries: 0, timeoutInMs: 10_000 };
    const client = new EventHubProducerClient(peer.connectionString, 'events', { retryOptions });
    onTestFinished(async () => {
      await client.close();
      await peer.stop();
    });
    // Only over an open link do messages that are sent at once come in at once.
    await client.sendBatch([{ body: Buffer.from('before') }]);
    peer.inject({ kind: 'size-exceeded', containing: 'poison' });
    const answers = await Promise.allSettled(
      bodies.map((body) => client.sendBatch([{ body: Buffer.from(body) }])),
    );
    const taken = bodies.filter((_body, index) => answers[index]?.status === 'fulfilled');
    expect(taken).toEqual(bodies.filter((body) => body !== 'poison'));
    expect(peer.messages('events').map(({ body }) => body.toString())).toEqual(['before', ...taken]);
  },
);
