import { describe } from 'vitest';
import { bodyOf, makeSubject } from './event-hubs-support.ts';
import { runContract } from './run-contract.ts';
import { signal } from './support.ts';

const COMPRESSIONS = ['auto', 'always', 'never'] as const;

describe.each(COMPRESSIONS)('event-hubs sink, compression %s: the sink contract', async (compression) => {
  await runContract(async () => {
    const { peer, sink } = await makeSubject({ compression });
    return {
      sink,
      destinations: ['other'],
      arrived: () =>
        Promise.resolve(
          ['events', 'other'].flatMap((hub) =>
            peer.messages(hub).map((message) => ({
              id: message.properties['idempotency-key'] ?? '',
              destination: hub === 'events' ? null : hub,
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
});
