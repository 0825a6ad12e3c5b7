import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';
import { describeUnderFaults, underLoad, verdictOn, verdictWithout, type Work } from './under-faults.ts';

const ONE_PARTITION = { partitions: 1 } as const;

// Alone, a leader takes what the others have not got, and is lost with it; they are still counted as in sync.
const loseLeader: Work = async (scene) => {
  const { fleet, cluster } = scene;
  await underLoad(scene, () => wait(1000));
  const leader = await cluster.oracle.leader(fleet.topic);
  const others = cluster.brokers.filter(({ id }) => id !== leader);
  const own = cluster.brokers.find(({ id }) => id === leader);
  const from = Date.now();
  await Promise.all(others.map(async (broker) => broker.pause()));
  const sending = underLoad(scene, () => wait(3000));
  await wait(2500);
  await own?.kill();
  for (const broker of others) broker.resume();
  await wait(3000);
  await own?.start();
  await sending;
  fleet.noteFault(from, 'a leader was lost that was alone', null);
};

const send: Work = (scene) => underLoad(scene, () => wait(2000));

const killDeliverers: Work = (scene) =>
  underLoad(
    scene,
    async () => {
      await wait(3000);
      await scene.faults.kill('d');
      await scene.faults.kill('d');
    },
    2,
  );

describeUnderFaults('a fleet that could lose events', (makeScene, cluster) => {
  test('a leader that was alone is lost', async () => {
    const scene = await makeScene(ONE_PARTITION);
    await loseLeader(scene);
    const { ok, text } = await verdictOn(scene);
    expect(ok, text).toBe(true);
  });

  test.each([
    ['acks=1', 'is not there', loseLeader, ONE_PARTITION],
    ['offset first', 'is not there', killDeliverers, { ms: 200 }],
    ['no dedup', 'no fault explains it', send, {}],
  ] as const)('the judge notices: %s', async (name, reason, work, options) => {
    const { isNoticed, text } = await verdictWithout(makeScene, name, reason, work, options);
    expect(isNoticed, text).toBe(true);
  });

  test('who starts while a partition has no leader waits until it has one', async () => {
    const { oracle, brokers } = cluster;
    // One copy: while its broker is gone, no broker can lead.
    const fleet = await Fleet.make(cluster, { partitions: 1, replicas: 1 });
    const leader = await oracle.leader(fleet.topic);
    const own = brokers.find(({ id }) => id === leader);
    await own?.kill();
    await until('the partition to have no leader', async () => (await oracle.leader(fleet.topic)) < 0);
    const starting = fleet.start('r1', 'receive');
    await own?.start();
    expect((await starting).url).toMatch(/^http:/);
  });
});
