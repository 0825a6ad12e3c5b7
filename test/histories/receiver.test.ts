import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runCount } from '../support/run-count.ts';
import { faultsOf, type Settings, type Step, STEPS } from './receiver-history.ts';

const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const SEED = Number(process.env['MILLRACE_SEED'] ?? 1);

const anySettings: fc.Arbitrary<Settings> = fc.record({
  sealed: fc.boolean(),
  retention: fc.constantFrom('1ms', '7d'),
  rotate: fc.constantFrom('1s', '1h'),
});
const anySteps = fc.array(fc.constantFrom(...(Object.keys(STEPS) as Step[])), {
  minLength: 4,
  maxLength: 14,
});

async function faultsAfter(settings: Settings, steps: readonly Step[]): Promise<readonly string[]> {
  const folder = mkdtempSync(join(BASE, 'millrace-receiver-'));
  try {
    return await faultsOf(folder, settings, steps);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test.each<[string, Settings, readonly Step[]]>([
  [
    'an erasure is killed before it has come to the journal, in which the user’s events wait: they are not lost',
    { sealed: true, retention: '1ms', rotate: '1h' },
    ['accept 9', 'kill', 'erase, killed', 'clear', 'reconcile'],
  ],
  [
    'an erasure while nothing runs, in an archive file that a kill left unfinished: what it takes out is not lost',
    { sealed: false, retention: '1ms', rotate: '1h' },
    ['accept 9', 'clear', 'kill', 'erase', 'clear', 'reconcile'],
  ],
  ...(['kill, move the archive', 'kill, rename its sink'] as const).flatMap((step) =>
    [false, true].map((sealed): [string, Settings, readonly Step[]] => [
      `${step}, ${sealed ? 'sealed' : 'plain'}: what was unfinished is finished, and searched by an erasure`,
      { sealed, retention: '7d', rotate: '1h' },
      ['accept 9', 'drain', step, 'accept 1', 'erase', 'drain', 'reconcile'],
    ]),
  ),
  [
    'stops amid reloads: no event comes twice',
    { sealed: true, retention: '7d', rotate: '1h' },
    Array<Step>(2).fill('stop amid a reload'),
  ],
  ...(['kill, move the journal', 'kill, acknowledge otherwise'] as const).map(
    (step): [string, Settings, readonly Step[]] => [
      `${step}, while events wait: refused with their count, or said`,
      { sealed: false, retention: '7d', rotate: '1h' },
      ['block', 'accept 9', step, 'start', 'accept 1'],
    ],
  ),
  ...Object.keys(STEPS)
    .filter((step) => step.startsWith('damage: '))
    .flatMap((step) =>
      (['1ms', '7d'] as const).map((retention): [string, Settings, readonly Step[]] => [
        `${step}, while events wait, with retention ${retention}: delivered, or named`,
        { sealed: false, retention, rotate: '1h' },
        ['accept 9', 'drain', 'block', 'accept 9', step as Step, 'unblock', 'drain', 'accept 1'],
      ]),
    ),
])('%s', async (_, settings, steps) => {
  expect(await faultsAfter(settings, steps)).toEqual([]);
});

test('histories of accepting, killing, erasing and killing that, restarting and reconciling: every acknowledged event has its place', async () => {
  const property = fc.asyncProperty(anySettings, anySteps, async (settings, steps) => {
    expect(await faultsAfter(settings, steps)).toEqual([]);
  });
  await fc.assert(property, { numRuns: runCount(3), seed: SEED, endOnFailure: true });
});
