import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Ended, millraceProcess } from '../support/millrace.ts';
import { runCount, SEED } from '../support/run-count.ts';

const HISTORIES = runCount({ long: 200 });

/** Seeds that have found something wrong with the receiver; a change of the program can make other histories of them. */
const FOUND = [2600, 3487, 11_314, 11_386, 11_461, 29_556];

function simulate(...args: readonly string[]): Promise<Ended> {
  const main = join(import.meta.dirname, 'main.ts');
  return millraceProcess(args, { program: [process.execPath, main] });
}

const steps = (seed: string): Promise<Ended> => simulate('--seed', seed, '--length', '5', '--steps');

// First, as its first process ends in order, alone: what it has compiled is then kept for the others.
test('the same seed gives the same history, and another gives another', async () => {
  const one = await steps('3');
  const [again, other] = await Promise.all([steps('3'), steps('4')]);
  expect(one.code).toBe(0);
  expect(again.stdout).toBe(one.stdout);
  expect(other.stdout).not.toBe(one.stdout);
});

test(`${HISTORIES} simulated histories: every acknowledged event has its place, and nothing of an erased user`, async () => {
  const { code, stdout, stderr } = await simulate(
    '--first',
    FOUND.join(),
    '--seed',
    String(SEED),
    '--histories',
    String(HISTORIES),
  );
  expect(code, stdout + stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ histories: HISTORIES, failed: [] });
});

/** Histories in which a defect has to show; it does in the first of these seeds. */
const PATIENCE = '60';

test.each([
  ['answer before sync', '11'],
  ['cursor before file', '10'],
  ['rename without directory sync', '6'],
])(
  'simulated histories find a receiver with the defect "%s"',
  async (defect, seed) => {
    const tries = ['--seed', seed, '--histories', PATIENCE, '--jobs', '1'];
    const { code, stdout } = await simulate(...tries, '--defect', defect);
    expect(code, stdout).toBe(1);
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
      failed: [expect.any(Number)],
    });
  },
  120_000,
);
