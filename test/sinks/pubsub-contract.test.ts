import { describe } from 'vitest';
import { bodyOf, makeSubject } from './pubsub-support.ts';
import { runContract } from './run-contract.ts';
import { signal } from './support.ts';

const CASES = [
  { compression: 'auto', ordering: false },
  { compression: 'always', ordering: true },
  { compression: 'never', ordering: true },
] as const;

describe.each(CASES)(
  'pubsub sink, compression $compression, ordering $ordering: the sink contract',
  async (options) => {
    await runContract(async () => {
      const { peer, sink } = await makeSubject(options);
      return {
        sink,
        destinations: ['other'],
        arrived: () =>
          Promise.resolve(
            ['events', 'other'].flatMap((topic) =>
              peer.messages(topic).map((message) => ({
                id: message.attributes['idempotency-key'] ?? '',
                destination: topic === 'events' ? null : topic,
                body: bodyOf(message),
              })),
            ),
          ),
        outage: { begin: () => peer.stop(), end: () => peer.restart() },
        dispose: async () => {
          await sink.close(signal);
          await peer.stop();
        },
      };
    });
  },
);
