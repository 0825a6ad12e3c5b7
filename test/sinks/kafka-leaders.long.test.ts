import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { describeOnKafka } from '../support/kafka/cluster.ts';
import { seededRandom } from '../support/random.ts';
import { runCount } from '../support/run-count.ts';
import { until } from '../support/until.ts';
import { startDelivering } from './delivering.ts';
import { idsOf, makeSink, put } from './kafka-support.ts';
import { signal } from './support.ts';

/** Faults of a run; each takes a new election, and a broker some seconds to come back. */
const FAULTS = runCount({ long: 2 });
const USERS = 5;
const BURST = 100;

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
      const random = seededRandom(47);
      const { journal, delivered, settled, dispatcher } = await startDelivering({ topics: sink });
      const sent: string[] = [];
      const burst = (): void => {
        for (let n = 0; n < BURST; n += 1) {
          const event = contractEvent(sent.length, { user: `user-${Math.floor(random() * USERS)}` });
          journal.put(event);
          sent.push(event.id);
        }
      };
      for (let fault = 0; fault < FAULTS; fault += 1) {
        burst();
        const leader = await oracle.leader(topic);
        const broker = brokers.find(({ id }) => id === leader);
        const isKill = random() < 0.5;
        await (isKill ? broker?.kill() : broker?.pause());
        burst();
        await settled('another leader', () =>
          dispatcher.status().every(({ delivered: n }) => n >= sent.length - BURST),
        );
        await (isKill ? broker?.start() : broker?.resume());
        await delivered('topics', sent.length);
      }
      const records = await oracle.read(topic);
      expect(new Set(idsOf(records))).toEqual(new Set(sent));
      const twice = records.length - sent.length;
      console.info(`${FAULTS} faults, ${sent.length} events, ${twice} repeated`);
      for (let user = 0; user < USERS; user += 1) {
        const ids = idsOf(records.filter(({ key }) => key?.toString() === `user-${user}`));
        const first = [...new Set(ids)].map((id) => Number(id.slice('msg_'.length)));
        expect(first).toEqual(first.toSorted((a, b) => a - b));
      }
    },
  );
});
