import { expect, test, vi } from 'vitest';
import { runCount } from '../support/run-count.ts';
import { skipped } from '../support/requirements.ts';
import type { RunOptions, Tally } from './campaign.ts';
import { CAMPAIGNS } from './registry.ts';
import { run } from './run.ts';

// Some cycles of each, and each broken on purpose. `npm run campaign` has the long runs, and the seeds again.

vi.setConfig({ maxConcurrency: 2 });

/** Broken on purpose they can fail before an event is lost: what was never synced may be damaged, and keep the receiver from starting. */
const FAIL_OTHERWISE: ReadonlySet<string> = new Set(['two-processes', 'power-cut']);

const FAULTS: Readonly<Record<string, string>> = {
  kill: 'fault 01: kill -9 under load',
  'power-cut': 'fault 02: power cut under load',
  'disk-full': 'fault 06: disk full',
  eio: 'fault 07: EIO on fsync',
  'two-processes': 'fault 08: two receivers on one journal',
};
const CYCLES = runCount({ long: 15 });

test('each campaign is run', () => {
  expect(Object.keys(FAULTS).sort()).toEqual(Object.keys(CAMPAIGNS).sort());
});

for (const [name, campaign] of Object.entries(CAMPAIGNS)) {
  const fault = FAULTS[name] ?? name;
  const go = (options: RunOptions): Promise<Tally> =>
    run(campaign, options, { note: () => undefined, signal: new AbortController().signal });

  const lack = campaign.lacks(false);
  test.skipIf(lack !== null)(
    `${fault}, ${CYCLES} cycles: nothing is lost, and it works again${skipped(lack)}`,
    { concurrent: true },
    async () => {
      const tally = await go({ cycles: CYCLES, seed: Date.now() % 2 ** 31, broken: false });
      expect(tally).toMatchObject({ cycles: CYCLES, lost: 0, failures: [] });
      expect(tally.faults).toBeGreaterThanOrEqual(CYCLES);
      expect(tally.acknowledged).toBeGreaterThan(0);
    },
  );

  const brokenLack = campaign.lacks(true);
  test.skipIf(brokenLack !== null)(
    `${fault}, broken on purpose (${campaign.breaks}): the run fails${skipped(brokenLack)}`,
    { concurrent: true },
    async () => {
      // It ends with the first loss; a kill can come at a moment when nothing is on its way.
      const { lost, failures } = await go({ cycles: 5, seed: 1, broken: true });
      expect(failures).toHaveLength(1);
      expect(lost > 0 || FAIL_OTHERWISE.has(name), JSON.stringify(failures)).toBe(true);
    },
  );
}
