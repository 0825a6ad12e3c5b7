import { expect, test } from 'vitest';
import { describeOnSharedKafka } from '../support/kafka/cluster.ts';
import type { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';

const COUNT = 40;

describeOnSharedKafka('a topic of what is set aside that gets more partitions', (kafka) => {
  const { oracle } = kafka;

  test('shows all that lies in it, also what came again after it was dropped', async () => {
    const fleet = await Fleet.make(kafka, { sinks: ['one'] });
    const topic = `${fleet.name}.quarantine`;
    await oracle.grow(topic, 2);
    const post = async (receiver: Receiver): Promise<void> => {
      for (let n = 0; n < COUNT; n += 1)
        expect((await postSigned(receiver.url, Buffer.from('[]'), { id: `msg_${n}` })).status).toBe(202);
    };
    const first = await fleet.startInside('r1', 'receive');
    await post(first);
    const dropped = await fleet.run('quarantine', 'drop', '--all');
    expect(dropped.stdout).toContain(`dropped ${COUNT}`);
    const counts = async (): Promise<number | null> => (await first.status()).journal?.quarantined ?? null;
    // A new broker knows of no groups for a moment.
    await until('the topic to be looked at', async () => (await counts()) === 0);
    await oracle.grow(topic, 5);
    const second = await fleet.startInside('r2', 'receive');
    await post(second);
    const places = (await oracle.read(topic)).map(({ partition }) => partition);
    expect(new Set(places)).toEqual(new Set([0, 1, 2, 3, 4]));
    const before = await fleet.listed('quarantine');
    expect(new Set(before.map(({ id }) => id)).size).toBe(COUNT);
    // Who has listed keys acts on what they stood for.
    await oracle.grow(topic, 7);
    expect(await fleet.listed('quarantine')).toEqual(before);
    // By one who has known the topic since before.
    await until('all to be counted', async () => (await counts()) === COUNT);
    for (const each of [first, second]) await each.kill('SIGTERM');
  });
});
