import { mkdtempSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { runCount, SEED } from '../support/run-count.ts';
import { within } from '../support/until.ts';
import { anyCommands, type Model, type Real, settle, start } from './commands.ts';
import { type Defects, Process } from './process.ts';
import { SINKS, type Settings, withSinks } from './settings.ts';
import { World } from './world.ts';

vi.setConfig({ testTimeout: 24 * 3_600_000 });

const HISTORIES = runCount({ quick: 100, long: 2000 });

const FIRST: Settings = {
  sinks: ['a', 'b'],
  routes: [
    { type: 't0.', to: ['a'] },
    { type: 't1.', to: ['b'] },
    { type: 't2.', to: ['a', 'b'] },
  ],
  continues: null,
};

/** Where nothing waits for a disk: it is the order of things that is tried here, not the disk. */
const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

function histories(defects: Defects): fc.IAsyncPropertyWithHooks<[Iterable<fc.AsyncCommand<Model, Real>>]> {
  return fc.asyncProperty(fc.commands([...anyCommands], { maxCommands: 25 }), async (commands) => {
    const folder = mkdtempSync(join(BASE, 'millrace-history-'));
    const world = new World(folder);
    const model: Model = { settings: FIRST };
    const real = { world, defects, count: 0 } as Real;
    try {
      await start(model, real, FIRST);
      await within(
        'the history',
        fc.asyncModelRun(() => ({ model, real }), commands),
      );
      // Every trouble is over, every sink is there again, and what was given up is retried for it.
      world.unblockAll();
      await within('the end', real.process.stop());
      await Process.retryLetters(world, SINKS);
      await start(model, real, withSinks(model.settings, SINKS));
      for (let turn = 0; !(await real.process.isDrained()); turn += 1) {
        if (turn > 500) throw new Error('events wait for ever');
        await settle(real);
      }
      expect(world.faults(await real.process.letters())).toEqual([]);
    } finally {
      real.process.kill();
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test(`${HISTORIES} histories of accepting, reloading, renaming, dropping, retrying, blocking, restarting, killing and retention: every event has its place`, async () => {
  const found = await fc.check(histories({}), { numRuns: HISTORIES, seed: SEED });
  expect(found.failed, fc.defaultReportMessage(found)).toBe(false);
});

test.each<[string, Defects]>([
  ['goes by the routes of now', { routesOfNow: true }],
  ['forgets the sinks that a config leaves behind', { forgetsSinks: true }],
])('the histories find a receiver that %s', async (_, defects) => {
  const found = await fc.check(histories(defects), { numRuns: 1000, seed: SEED, endOnFailure: true });
  // By an event that is not where it should be, and not by a stumble of its own.
  expect(String(found.errorInstance)).toContain('to deeply equal []');
});
