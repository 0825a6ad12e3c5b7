import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { runCount, SEED } from '../support/run-count.ts';
import { FarSide, PLACES, Run, TO } from './settled-side.ts';

vi.setConfig({ testTimeout: 24 * 3_600_000 });

const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

interface Real {
  readonly far: FarSide;
  run: Run;
  count: number;
}

type Step = fc.AsyncCommand<object, Real>;

/** Turns of the event loop in which the receiver gets on, and time goes by. */
async function goOn({ far }: Real, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    if (turn % 3 === 2) far.clock.next();
  }
}

/** Dead letters are there once each, and as they are known to be. */
async function check({ far, run }: Real): Promise<void> {
  const names = (await run.letters()).map(({ name }) => name);
  const twice = names.filter((name, at) => names.indexOf(name) !== at);
  const faults = [...far.faults, ...twice.map((name) => `${name} is a dead letter twice`)];
  for (const name of names) {
    if (far.got.has(name) && !far.unsure.has(name))
      faults.push(`${name} is a dead letter, and was confirmed`);
    if (far.dropped.has(name)) faults.push(`${name} is a dead letter, and was dropped`);
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
}

function command(text: string, turns: number, act: (real: Real) => Promise<void> | void): Step {
  return {
    check: () => true,
    run: async (_, real) => {
      await act(real);
      await goOn(real, turns);
      await check(real);
    },
    toString: () => text,
  };
}

/** Letters that a person picks: every `of`-th. */
async function pick({ run }: Real, of: number): Promise<readonly { key: number; name: string }[]> {
  return (await run.letters()).filter((_, at) => at % of === 0);
}

const place = fc.constantFrom(...PLACES);
const some = fc.integer({ min: 1, max: 3 });

const anyStep: fc.Arbitrary<Step>[] = [
  fc
    .tuple(fc.integer({ min: 1, max: 25 }), fc.constantFrom(...Object.keys(TO)), fc.nat(30))
    .map(([count, type, turns]) =>
      command(`append ${count} ${type}`, turns, async (real) => {
        for (let n = 0; n < count; n += 1) await real.run.append(`e${(real.count += 1)}`, type);
      }),
    ),
  place.map((at) => command(`${at} down`, 3, ({ far }) => void far.down.add(at))),
  fc.constant(
    command('what the other place gets while one is down', 150, async (real) => {
      const { down } = real.far;
      const up = PLACES.find((at) => !down.has(at));
      if (down.size !== 1 || up === undefined) return;
      await goOn(real, 300);
      const there = new Set([
        ...real.far.got,
        ...real.far.dropped,
        ...(await real.run.letters()).map(({ name }) => name),
      ]);
      const missing = [...real.far.owed].filter((name) => name.endsWith(`@${up}`) && !there.has(name));
      if (missing.length > 0) throw new Error(`${missing.join()} waits for a place that is down`);
    }),
  ),
  place.map((at) => command(`${at} up`, 40, ({ far }) => void far.down.delete(at))),
  place.map((at) => command(`${at} refuses`, 3, ({ far }) => void far.refusing.add(at))),
  place.map((at) => command(`${at} takes all`, 3, ({ far }) => void far.refusing.delete(at))),
  some.map((of) =>
    command(`drop one in ${of}`, 10, async (real) => {
      const letters = await pick(real, of);
      for (const { name } of letters) real.far.dropped.add(name);
      for (const { name } of letters) real.far.refused.delete(name);
      await real.run.journal.dropDeadLetters({ keys: letters.map(({ key }) => key) });
    }),
  ),
  some.map((of) =>
    command(`retry one in ${of}`, 10, async (real) => {
      const letters = await pick(real, of);
      for (const { name } of letters) real.far.putBack.add(name);
      for (const { name } of letters) real.far.refused.delete(name);
      await real.run.journal.retryDeadLetters({ keys: letters.map(({ key }) => key) });
    }),
  ),
  fc.constant(command('reload', 10, ({ run }) => run.reload())),
  fc.constant(
    command('stop, start', 10, async (real) => {
      await real.run.stop();
      real.run = await Run.start(real.far);
    }),
  ),
  fc.nat(40).map((turns) =>
    command(`kill after ${turns}`, 10, async (real) => {
      await goOn(real, turns);
      // What was confirmed since the last write of the cursor may come again: there was time for one before.
      real.run.kill();
      for (const name of real.far.fresh) real.far.unsure.add(name);
      real.run = await Run.start(real.far);
    }),
  ),
  fc.constant(
    command('a quiet time', 60, async (real) => {
      await goOn(real, 60);
      await real.run.journal.flush();
      real.far.fresh.clear();
    }),
  ),
];

test('what is settled stays settled over reloads, restarts and kills, whatever else waits', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(anyStep, { maxCommands: 40, size: 'max' }), async (commands) => {
      const far = new FarSide(mkdtempSync(join(BASE, 'millrace-settled-')));
      const real: Real = { far, run: await Run.start(far), count: 0 };
      try {
        await fc.asyncModelRun(() => ({ model: {}, real }), commands);
        far.down.clear();
        far.refusing.clear();
        await goOn(real, 400);
        await check(real);
        const letters = (await real.run.letters()).map(({ name }) => name);
        const there = new Set([...far.got, ...far.dropped, ...letters]);
        expect([...far.owed].filter((name) => !there.has(name))).toEqual([]);
        await real.run.stop();
      } finally {
        rmSync(far.folder, { recursive: true, force: true });
      }
    }),
    { numRuns: runCount({ quick: 60, long: 300 }), seed: SEED },
  );
});
