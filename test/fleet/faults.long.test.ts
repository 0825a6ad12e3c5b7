import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runCount, SEED } from '../support/run-count.ts';
import { describeUnderFaults, verdictOn, underLoad } from './under-faults.ts';

const FAULTS = runCount({ long: 4 });

describeUnderFaults('a fleet under faults', (makeScene) => {
  test(
    `${FAULTS} faults, seed ${SEED}: nothing is lost, all is in order, and only what was in flight comes again`,
    { timeout: 600_000 + FAULTS * 15_000 },
    async () => {
      const scene = await makeScene();
      await underLoad(scene, async () => {
        for (let n = 0; n < FAULTS; n += 1) {
          await scene.faults.next();
          await wait(500);
        }
      });
      const { ok, text } = await verdictOn(scene);
      // oxlint-disable-next-line no-console -- the figures of a campaign
      console.log(text, Object.fromEntries(scene.faults.done));
      expect(ok, text).toBe(true);
    },
  );

  test('scaled from 3 to 1 and to 3 again under load', async () => {
    const scene = await makeScene();
    const { faults } = scene;
    await underLoad(scene, async () => {
      for (const name of ['d3', 'd1']) {
        expect(await faults.running.get(name)?.kill('SIGTERM')).toMatchObject({ code: 0 });
        faults.running.delete(name);
        await wait(1000);
      }
      for (const name of ['d4', 'd5']) await faults.start(name);
      await wait(2000);
    });
    const { ok, text } = await verdictOn(scene);
    expect(ok, text).toBe(true);
    // Nothing was in flight when they stopped.
    expect(text).toContain('"twice":0');
  });
});
