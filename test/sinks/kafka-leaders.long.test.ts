import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { runCount } from '../support/run-count.ts';
import { until } from '../support/until.ts';
import { idsOf, makeSink, put, surviveFaults } from './kafka-support.ts';
import { signal } from './support.ts';

/** Faults of a run; each takes a new election, and a broker some seconds to come back. */
const FAULTS = runCount({ long: 2 });

type Fault = Parameters<typeof surviveFaults>[1][number];

describeOnKafka('kafka sink, three brokers', { brokers: 3 }, ({ addresses, brokers, oracle }) => {
  it('calls nothing delivered that only the leader has', async () => {
    const topic = `events-${randomUUID()}`;
    await oracle.create(topic, 1, 3);
    const sink = makeSink(addresses, { topic, timeout: '3s' });
    onTestFinished(() => sink.close(signal));
    await sink.open(signal);
    await put(sink, [contractEvent(1)]);
    const leader = await oracle.leader(topic);
    const followers = brokers.filter(({ id }) => id !== leader);
    for (const follower of followers) await follower.pause();
    const results = await sink.send([{ event: contractEvent(2), destination: null }], signal);
    for (const follower of followers) follower.resume();
    expect(results).toMatchObject([{ status: 'retry', sink: true }]);
    await until('it to be delivered', async () => {
      const [again] = await sink.send([{ event: contractEvent(2), destination: null }], signal);
      return again?.status === 'delivered';
    });
    expect([...new Set(idsOf(await oracle.read(topic)))]).toEqual(['msg_1', 'msg_2']);
  });

  it(
    'faults 11 and 47: leaders are killed and paused under load: nothing lost, each user in order',
    { timeout: 600_000 + 60_000 * FAULTS },
    async () => {
      const topic = `events-${randomUUID()}`;
      await oracle.create(topic, 4, 3);
      const sink = makeSink(addresses, { topic, timeout: '5s', batch: { count: 25 } });
      onTestFinished(() => sink.close(signal));
      const fault = async ({ more, earlier, random }: Parameters<Fault>[0]): Promise<void> => {
        const leader = await oracle.leader(topic);
        const broker = brokers.find(({ id }) => id === leader);
        const isKill = random() < 0.5;
        await (isKill ? broker?.kill() : broker?.pause());
        more();
        // By another leader.
        await earlier();
        await (isKill ? broker?.start() : broker?.resume());
      };
      const faults = Array.from({ length: FAULTS }, () => fault);
      await expect(
        surviveFaults({ sink, topic, oracle, users: 5, burst: 100, seed: 47 }, faults),
      ).resolves.toBeUndefined();
    },
  );
});
