import { randomUUID } from 'node:crypto';
import { describe } from 'vitest';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { bodyOf, makeSink } from './kafka-support.ts';
import { runContract } from './run-contract.ts';
import { signal } from './support.ts';

describeOnKafka('kafka sink', {}, ({ addresses, brokers, oracle }) => {
  const CASES = [
    { idempotent: true, compression: 'auto', codec: 'none' },
    { idempotent: false, compression: 'never', codec: 'zstd' },
  ] as const;

  describe.each(CASES)('%j: the sink contract', async (options) => {
    await runContract(async () => {
      const [topic, other] = [`events-${randomUUID()}`, `other-${randomUUID()}`];
      for (const name of [topic, other]) await oracle.create(name, 3);
      const sink = makeSink(addresses, { topic, timeout: '1500ms', ...options });
      return {
        sink,
        destinations: [other],
        arrived: async () => {
          const places = [topic, other].map(async (name) =>
            (await oracle.read(name)).map((record) => ({
              id: record.headers['idempotency-key'] ?? '',
              destination: name === topic ? null : name,
              body: bodyOf(record),
            })),
          );
          return (await Promise.all(places)).flat();
        },
        outage: { begin: async () => brokers[0]?.pause(), end: async () => brokers[0]?.resume() },
        dispose: async () => {
          brokers[0]?.resume();
          await sink.close(signal);
        },
      };
    });
  });
});
