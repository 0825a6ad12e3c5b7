import { expect, test } from 'vitest';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

describeOnSharedKafka('a topic that gets more partitions', (kafka) => {
  test('is delivered from all of them, by who is there', async () => {
    const fleet = await Fleet.make(kafka, { partitions: 1, sinks: ['one'], session: '6s' });
    // One alone: no member joins, which would assign the partitions again.
    const deliverer = await fleet.startInside('d1', 'deliver');
    const before = await fleet.startInside('r1', 'receive');
    await fleet.send('early', () => [before.url]);
    await until('the first to be delivered', () => fleet.isDelivered);
    for (const topic of ['window', 'events']) await kafka.oracle.grow(`${fleet.name}.${topic}`, 4);
    // One that has asked how many there are since.
    const receiver = await fleet.startInside('r2', 'receive');
    for (let n = 0; n < 12; n += 1) await fleet.send(`user-${n}`, () => [receiver.url]);
    const used = (await kafka.oracle.read(fleet.topic)).map(({ partition }) => partition);
    expect(new Set(used).size).toBeGreaterThan(1);
    await until('all to be delivered', () => fleet.isDelivered);
    expect(fleet.given('one')).toHaveLength(13);
    for (const each of [before, receiver, deliverer]) await each.kill('SIGTERM');
  });
});
