import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { runCount } from '../support/run-count.ts';
import { FARS, PLACES, RerouteWorld, type Far, type Table } from './rerouted-world.ts';

vi.setConfig({ testTimeout: 24 * 3_600_000 });

const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
const TYPES = ['t', 'u', 'v'];

const place = fc.tuple(fc.constantFrom(...FARS), fc.constantFrom(...PLACES));
const to = fc.uniqueArray(place, { minLength: 1, maxLength: 4, selector: (each) => each.join(':') });
const table: fc.Arbitrary<Table> = fc
  .tuple(fc.subarray(TYPES), fc.array(to, { minLength: 4, maxLength: 4 }))
  .map(([types, all]) => [...types, '*'].map((type, at) => ({ type, to: all[at] ?? [] })));

interface Now {
  readonly world: RerouteWorld;
  readonly tables: readonly Table[];
  table: Table;
}

interface Step {
  readonly text: string;
  readonly act: (now: Now) => Promise<void> | void;
  /** Given after it. */
  readonly turns: number;
}

const turns = fc.constantFrom(0, 0, 1, 3, 10, 40);
const which = fc.constantFrom(0, 1, 2);

function step<Given>(
  weight: number,
  name: string,
  given: fc.Arbitrary<Given>,
  act: (now: Now, given: Given) => Promise<void> | void,
): fc.WeightedArbitrary<Step> {
  const arbitrary = fc.tuple(given, turns).map(([value, after]) => ({
    text: `${name} ${JSON.stringify(value)}, ${after} turns`,
    act: (now: Now) => act(now, value),
    turns: after,
  }));
  return { weight, arbitrary };
}

/** Exchanges the sinks' names, as three reloads. */
async function exchange({ world, table: now }: Now): Promise<void> {
  const [a = '', b = ''] = FARS.map((far) => world.names.get(far));
  const names: [Far, string][] = [
    ['A', world.freshName()],
    ['B', a],
    ['A', b],
  ];
  for (const each of names) await world.reload(now, each);
}

const choose = (now: Now, at: number): Table => (now.table = now.tables[at] ?? now.table);

const steps = fc.array(
  fc.oneof(
    step(
      8,
      'accept',
      fc.tuple(fc.integer({ min: 1, max: 6 }), fc.constantFrom(...TYPES)),
      async ({ world }, [count, type]) => {
        for (let n = 0; n < count; n += 1) await world.accept(type);
      },
    ),
    step(3, 'down', place, ({ world }, at) => void world.down.add(at.join(':'))),
    step(1, 'up', fc.constant(0), ({ world }) => {
      world.down.clear();
      world.refuses.clear();
    }),
    step(1, 'refuse', place, ({ world }, at) => void world.refuses.add(at.join(':'))),
    step(5, 'reload', which, (now, at) => now.world.reload(choose(now, at))),
    step(2, 'restart', which, async (now, at) => {
      await now.world.stop();
      await now.world.start(choose(now, at));
    }),
    step(2, 'kill', which, (now, at) => {
      now.world.kill();
      return now.world.start(choose(now, at));
    }),
    step(1, 'rename', fc.constantFrom(...FARS), ({ world, table: now }, far) =>
      world.reload(now, [far, world.freshName()]),
    ),
    step(1, 'exchange', fc.constant(0), exchange),
    step(1, 'confirm', fc.boolean(), ({ world }, isThere) => world.confirm(isThere)),
    step(1, 'letters', fc.constantFrom('drop' as const, 'retry' as const), ({ world }, how) =>
      world.takeLetters(how),
    ),
  ),
  { maxLength: 40, size: 'max' },
);

test('whatever routes, names and targets become while events wait, each event comes to where a route named', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(table, table, table),
      fc.constantFrom(4, 12, 100),
      steps,
      async (tables, maxPending, all) => {
        const folder = mkdtempSync(join(BASE, 'millrace-'));
        const now: Now = { world: new RerouteWorld(folder, maxPending), tables, table: tables[0] };
        const { world } = now;
        try {
          await world.start(now.table);
          for (const { act, turns: after } of all) {
            await act(now);
            await world.go(after);
          }
          world.down.clear();
          world.refuses.clear();
          for (let n = 0; n < 30 && (n < 4 || (await world.lost()).length > 0); n += 1) {
            await world.go(20);
            world.confirm(true);
          }
          expect(await world.lost(), all.map(({ text }) => text).join('; ')).toEqual([]);
        } finally {
          world.kill();
          rmSync(folder, { recursive: true, force: true });
        }
      },
    ),
    { numRuns: runCount({ quick: 8, long: 40 }) },
  );
});
