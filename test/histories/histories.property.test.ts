import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { runCount, SEED } from '../support/run-count.ts';
import { type Config, type Defects, type Far, FARS, PLACES, World } from './world.ts';

vi.setConfig({ testTimeout: 24 * 3_600_000 });

const HISTORIES = runCount({ quick: 60, long: 1000 });
/** Where nothing waits for a disk: it is the order of things that is tried here, not the disk. */
const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const TYPES = ['t', 'u', 'v'];

const anyFar = fc.constantFrom(...FARS);
const anyType = fc.constantFrom(...TYPES);
const anyPlace = fc.tuple(anyFar, fc.constantFrom(...PLACES));
const to = fc.uniqueArray(anyPlace, { minLength: 1, maxLength: 4, selector: (each) => each.join(':') });
const anyConfig: fc.Arbitrary<Config> = fc
  .tuple(fc.subarray(TYPES), fc.array(to, { minLength: 4, maxLength: 4 }), fc.subarray([...FARS]))
  .map(([types, all, extra]) => ({
    table: [...types, '*'].map((type, at) => ({ type, to: all[at] ?? [] })),
    extra,
  }));

interface Step {
  readonly text: string;
  readonly act: (world: World, configs: readonly Config[]) => Promise<unknown> | void;
  /** Given after it. */
  readonly turns: number;
}

const turns = fc.constantFrom(0, 0, 1, 3, 10, 40);
/** Of the configs that the operator changes between. */
const which = fc.constantFrom(0, 1, 2);
const nothing = fc.constant(0);

function step<Given>(
  weight: number,
  name: string,
  given: fc.Arbitrary<Given>,
  act: (world: World, given: Given, configs: readonly Config[]) => Promise<unknown> | void,
): fc.WeightedArbitrary<Step> {
  const arbitrary = fc.tuple(given, turns).map(([value, after]) => ({
    text: `${name} ${JSON.stringify(value)}, ${after} turns`,
    act: (world: World, configs: readonly Config[]) => act(world, value, configs),
    turns: after,
  }));
  return { weight, arbitrary };
}

async function rename(world: World, far: Far, name = world.freshName()): Promise<void> {
  if (world.has(far)) await world.reload(world.config, [far, name]);
}

/** Exchanges the names of two sinks, as three reloads. */
async function exchange(world: World): Promise<void> {
  if (!world.has('A') || !world.has('B')) return;
  const [a, b] = [world.names.get('A'), world.names.get('B')];
  await rename(world, 'A');
  await rename(world, 'B', a);
  await rename(world, 'A', b);
}

const steps = fc.array(
  fc.oneof(
    step(8, 'accept', fc.tuple(fc.integer({ min: 1, max: 6 }), anyType), (world, [count, type]) =>
      world.accept(type, count),
    ),
    step(
      3,
      'down',
      fc.oneof(
        anyFar.map(String),
        anyPlace.map((place) => place.join(':')),
      ),
      (world, at) => {
        world.down.add(at);
      },
    ),
    step(1, 'up', nothing, (world) => {
      world.down.clear();
      world.refuses.clear();
    }),
    step(1, 'refuse', anyPlace, (world, at) => void world.refuses.add(at.join(':'))),
    step(5, 'reload', which, (world, at, configs) => world.reload(configs[at] ?? world.config)),
    step(1, 'reload, which fails', which, (world, at, configs) =>
      world.failToReload(configs[at] ?? world.config),
    ),
    step(1, 'accept while reload', fc.tuple(anyType, which), (world, [type, at], configs) =>
      world.acceptWhileReload(type, configs[at] ?? world.config),
    ),
    step(
      4,
      'kill or stop, and start, dropping what is waited for or not',
      fc.tuple(fc.boolean(), which, fc.boolean()),
      async (world, [kills, at, drops], configs) => {
        if (kills) world.kill();
        else await world.stop();
        await world.start(configs[at] ?? world.config, drops);
      },
    ),
    step(1, 'rename', anyFar, (world, far) => rename(world, far)),
    step(1, 'exchange', nothing, exchange),
    step(1, 'drop', anyFar, (world, far) => world.drop(far)),
    step(1, 'confirm', fc.boolean(), (world, isThere) => world.confirm(isThere)),
    step(1, 'dead letters', fc.constantFrom('drop' as const, 'retry' as const), (world, how) =>
      world.handleDeadLetters(how, 2),
    ),
    step(1, 'retain', nothing, (world) => world.retain()),
  ),
  { maxLength: 40, size: 'max' },
);

/** Every trouble is over, every far side has a sink again, and what is a dead letter is sent again. */
async function end(world: World): Promise<readonly string[]> {
  world.down.clear();
  world.refuses.clear();
  await world.stop();
  await world.start({ ...world.config, extra: FARS });
  for (let n = 0; n < 30 && (n < 4 || world.faults().length > 0); n += 1) {
    await world.handleDeadLetters('retry', 1);
    await world.go(20);
    world.confirm(true);
  }
  return world.faults();
}

const histories = (defects: Defects) =>
  fc.asyncProperty(
    fc.tuple(anyConfig, anyConfig, anyConfig),
    fc.constantFrom(4, 12, 100),
    steps,
    async (configs, maxPending, all) => {
      const folder = mkdtempSync(join(BASE, 'millrace-history-'));
      const world = new World(folder, maxPending, defects);
      try {
        await world.start(configs[0]);
        for (const { act, turns: after } of all) {
          await act(world, configs);
          await world.go(after);
        }
        expect(await end(world), all.map(({ text }) => text).join('; ')).toEqual([]);
      } finally {
        world.kill();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

test(`${HISTORIES} histories: whatever routes, names, targets and sinks become while events wait, each event has its place`, async () => {
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
