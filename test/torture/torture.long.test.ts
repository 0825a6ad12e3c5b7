import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { skipped } from '../support/requirements.ts';
import type { Step } from './history.ts';
import { MUTANTS, type Mutant } from './mutants.ts';
import { record } from './record.ts';
import { buildRecorder, lacksRecorder } from './recorder.ts';
import type { Recording } from './recording.ts';
import { Tries } from './torture.ts';

const SEED = 1;
/** Some of everything, and no more: each operation of it is a crash point. */
const STEPS: readonly Step[] = ['burst', 'invalid', 'pause', 'reload', 'burst', 'erase', 'stop'];

/** With all of it lost at each operation, and in other ways at some. */
const perPoint = (point: number): number => (point % 24 === 0 ? 3 : 1);

const lack = lacksRecorder();

describe.skipIf(lack !== null)(`the disk after a crash${skipped(lack)}`, () => {
  const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'millrace-torture-'));
  let recording: Recording;

  beforeAll(async () => {
    ({ recording } = await record(base, buildRecorder(base), SEED, STEPS));
  });
  afterAll(() => rmSync(base, { recursive: true, force: true }));

  test('of a run with a reload and an erasure, between its operations: nothing is lost, torn or back', async () => {
    const tries = new Tries(recording);
    const failed: string[] = [];
    for await (const { state, faults } of tries.run({ perPoint, seed: SEED }))
      if (faults.length > 0) failed.push(`${state}: ${faults[0]}`);
    expect(failed.slice(0, 10), `of ${tries.states} states`).toEqual([]);
    expect(tries.states).toBeGreaterThan(50);
  });

  test.each(Object.keys(MUTANTS) as Mutant[])('finds a receiver that %s', async (name) => {
    const mutant = MUTANTS[name](recording);
    const from = mutant.said[0]?.at;
    let found: readonly string[] = [];
    for await (const { faults } of new Tries(mutant).run({ perPoint: () => 1, seed: SEED, from })) {
      found = faults;
      if (found.length > 0) break;
    }
    expect(found).not.toEqual([]);
  });
});
