import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { describeUnderFaults, underLoad, verdictOn, verdictWithout, type Work } from './under-faults.ts';

const SLOW = { ms: 150 } as const;
/** Events: a third of them is far more than one process may send again after a fault. */
const MUCH = 3000;
const HELD = { session: '20s', stalls: 'stalls', only: 'one' } as const;

// With much waiting in memory, which others have when it comes back.
const pauseDeliverers: Work = (scene) =>
  underLoad(
    scene,
    async () => {
      await wait(3000);
      for (let n = 0; n < 2; n += 1) await scene.faults.pause('d', 8000);
    },
    3,
  );

// Much lies in the deliverers' memory when nothing can be committed any more; others then have what was not.
const pauseAllBrokers: Work = async (scene) => {
  const { fleet, faults } = scene;
  // Partitions must not change hands any more.
  await underLoad(scene, () => wait(2000));
  await until('all to be delivered', async () => fleet.isDelivered || wait(200).then(() => false));
  const stalls = join(fleet.folder, 'stalls');
  writeFileSync(stalls, '');
  const enough = fleet.acknowledged + MUCH;
  await underLoad(scene, () => until('much to lie in memory', () => fleet.acknowledged >= enough), 3);
  await until('the other sink to have all', () => fleet.isDeliveredTo('two'));
  await faults.pauseAllBrokers(25_000, () => rmSync(stalls));
  // What comes again comes before this.
  await underLoad(scene, () => wait(500));
};

describeUnderFaults('a fleet that is paused', (makeScene) => {
  test.each([
    ['deliverers with much to do are paused, and come back when others have it', SLOW, pauseDeliverers],
    ['nothing can be committed while there is much to send', HELD, pauseAllBrokers],
  ] as const)('%s', async (_, options, work) => {
    const scene = await makeScene(options);
    await work(scene);
    const { ok, text } = await verdictOn(scene);
    expect(ok, text).toBe(true);
  });

  test.each([
    ['no fencing', 'again', pauseDeliverers, SLOW],
    ['no bound', 'no more of it', pauseAllBrokers, HELD],
  ] as const)('the judge notices: %s', async (name, reason, work, options) => {
    const { isNoticed, text } = await verdictWithout(makeScene, name, reason, work, options);
    expect(isNoticed, text).toBe(true);
  });
});
