import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { makeMutant, type Mutation } from '../support/mutant.ts';
import { runCount, SEED } from '../support/run-count.ts';
import { faultsOf, type Settings, type Step, STEPS } from './receiver-history.ts';

const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

const anySettings: fc.Arbitrary<Settings> = fc.record({
  sealed: fc.boolean(),
  retention: fc.constantFrom('1ms', '7d'),
  rotate: fc.constantFrom('1s', '1h'),
});
const anySteps = fc.array(fc.constantFrom(...(Object.keys(STEPS) as Step[])), {
  minLength: 4,
  maxLength: 14,
});

async function faultsAfter(
  settings: Settings,
  steps: readonly Step[],
  main?: string,
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(BASE, 'millrace-receiver-'));
  try {
    return await faultsOf(folder, settings, steps, main);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Fixed {
  readonly what: string;
  readonly settings: Settings;
  readonly steps: readonly Step[];
  /** Takes the mending of the fault out again: the history has to fail. */
  readonly mutation: Mutation | null;
}

const FIXED: readonly Fixed[] = [
  {
    what: 'an erasure is killed before it has come to the journal, in which the user’s events wait: they are not lost',
    settings: { sealed: true, retention: '1ms', rotate: '1h' },
    steps: ['accept 9', 'kill', 'erase, killed', 'clear', 'reconcile'],
    mutation: [/journal\.passedOver\(name, event\);/, ';'],
  },
  {
    what: 'an erasure while nothing runs, in an archive file that a kill left unfinished: what it takes out is not lost',
    settings: { sealed: false, retention: '1ms', rotate: '1h' },
    steps: ['accept 9', 'clear', 'kill', 'erase', 'clear', 'reconcile'],
    mutation: [
      /if \(isUnfinished\(file\)\) \{\s+if \(!isRefused\) /,
      'if (isUnfinished(file)) {\nif (false) ',
    ],
  },
  ...(['kill, move the archive', 'kill, rename its sink'] as const).flatMap((step) =>
    [false, true].map((sealed): Fixed => ({
      what: `${step}, ${sealed ? 'sealed' : 'plain'}: what was unfinished is finished, and searched by an erasure`,
      settings: { sealed, retention: '7d', rotate: '1h' },
      steps: ['accept 9', 'drain', step, 'accept 1', 'erase', 'drain', 'reconcile'],
      mutation: step === 'kill, move the archive' ? [/made: earlier\.start\(\)/, 'made: void 0'] : null,
    })),
  ),
  {
    what: 'stops amid reloads: no event comes twice',
    settings: { sealed: true, retention: '7d', rotate: '1h' },
    steps: Array<Step>(2).fill('stop amid a reload'),
    mutation: [/await parts\.start\("reloads", \(\) => startReloads\(base\)\);/, ''],
  },
  ...(['kill, move the journal', 'kill, acknowledge otherwise'] as const).map((step): Fixed => ({
    what: `${step}, while events wait: refused with their count, or said`,
    settings: { sealed: false, retention: '7d', rotate: '1h' },
    steps: ['block', 'accept 9', step, 'start', 'accept 1'],
    mutation: [/throw new MillraceError\("journal_waited_for"/, 'void ("journal_waited_for"'],
  })),
  ...Object.keys(STEPS)
    .filter((step) => step.startsWith('damage: '))
    .flatMap((step) =>
      (['1ms', '7d'] as const).map((retention): Fixed => ({
        what: `${step}, while events wait, with retention ${retention}: delivered, or named`,
        settings: { sealed: false, retention, rotate: '1h' },
        steps: ['accept 9', 'drain', 'block', 'accept 9', step as Step, 'unblock', 'drain', 'accept 1'],
        mutation: null,
      })),
    ),
];

test.each(FIXED)('$what', async ({ settings, steps }) => {
  expect(await faultsAfter(settings, steps)).toEqual([]);
});

const MUTANTS = FIXED.flatMap(({ mutation, ...fixed }) =>
  mutation === null ? [] : [{ ...fixed, mutation }],
);

test.each(MUTANTS)('fails without the mending: $what', async ({ what, settings, steps, mutation }) => {
  const { main, remove } = makeMutant(what, mutation);
  onTestFinished(remove);
  expect(await faultsAfter(settings, steps, main)).not.toEqual([]);
});

test('histories of accepting, killing, erasing and killing that, restarting and reconciling: every acknowledged event has its place', async () => {
  const property = fc.asyncProperty(anySettings, anySteps, async (settings, steps) => {
    expect(await faultsAfter(settings, steps)).toEqual([]);
  });
  await fc.assert(property, { numRuns: runCount({ quick: 3, long: 15 }), seed: SEED, endOnFailure: true });
});
