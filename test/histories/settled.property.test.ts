import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type { SendResult } from '../../src/core/sink.ts';
import { runCount, SEED } from '../support/run-count.ts';
import { type Config, userOf, type Witness, World } from './world.ts';

vi.setConfig({ testTimeout: 24 * 3_600_000 });

const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** One sink with two places. */
const PLACES = ['A:x', 'A:y'] as const;
const CONFIG: Config = {
  table: [
    { type: 't0', to: [['A', 'x']] },
    {
      type: 't1',
      to: [
        ['A', 'x'],
        ['A', 'y'],
      ],
    },
    { type: 't2', to: [['A', 'y']] },
  ],
  extra: [],
};

/** Plain lists of what has been at the far side and what a person did: the oracle. Nothing of it is asked of the product. */
class Ledger implements Witness {
  readonly all = new Set<string>();
  readonly got = new Set<string>();
  /** Refused by the far side, and not retried by a person since. */
  readonly refused = new Set<string>();
  readonly dropped = new Set<string>();
  /** Retried by a person: it may come once more. */
  readonly retried = new Set<string>();
  /** Confirmed when a process was killed that may not have noted it yet. */
  readonly unsure = new Set<string>();
  /** Confirmed since there was last time for writing it down. */
  readonly fresh = new Set<string>();
  readonly faults: string[] = [];
  /** By user and place, what is owed in the order in which it came. */
  readonly #lines = new Map<string, string[]>();

  owed(name: string): void {
    const line = lineOf(name);
    this.#lines.set(line, [...(this.#lines.get(line) ?? []), name]);
    this.all.add(name);
  }

  came(name: string): void {
    const was = [
      ...(this.dropped.has(name) ? ['dropped'] : []),
      ...(this.refused.has(name) ? ['a dead letter'] : []),
      ...(this.got.has(name) && !this.retried.has(name) && !this.unsure.has(name) ? ['confirmed'] : []),
    ];
    if (was.length > 0) this.faults.push(`${name} came again, and was ${was.join(', ')}`);
    const line = this.#lines.get(lineOf(name)) ?? [];
    for (const before of line.slice(0, line.indexOf(name)))
      if (![this.got, this.refused, this.dropped, this.retried].some((has) => has.has(before)))
        this.faults.push(`${name} came before ${before}`);
  }

  answered(name: string, status: SendResult['status']): void {
    if (status === 'retry') return;
    this.retried.delete(name);
    if (status === 'refused') this.refused.add(name);
    else for (const names of [this.got, this.fresh]) names.add(name);
  }

  taken(how: 'drop' | 'retry', names: readonly string[]): void {
    for (const name of names) {
      (how === 'drop' ? this.dropped : this.retried).add(name);
      this.refused.delete(name);
    }
  }

  /** What is nowhere, with these dead letters. */
  missing(deadLetters: readonly string[]): string[] {
    const there = new Set([...this.got, ...this.dropped, ...deadLetters]);
    return [...this.all].filter((name) => !there.has(name));
  }
}

function lineOf(name: string): string {
  const [id = '', place = ''] = name.split('@');
  return `${userOf(id)} ${place}`;
}

interface Real {
  readonly world: World;
  readonly ledger: Ledger;
}

type Step = fc.AsyncCommand<object, Real>;

const deadLettersOf = async ({ world }: Real): Promise<string[]> =>
  (await world.deadLetters()).map(({ name }) => name);

/** Dead letters are there once each, and as they are known to be. */
async function check(real: Real): Promise<void> {
  const { ledger } = real;
  const names = await deadLettersOf(real);
  const twice = names.filter((name, at) => names.indexOf(name) !== at);
  const faults = [...ledger.faults, ...twice.map((name) => `${name} is a dead letter twice`)];
  for (const name of names) {
    if (ledger.got.has(name) && !ledger.unsure.has(name))
      faults.push(`${name} is a dead letter, and was confirmed`);
    if (ledger.dropped.has(name)) faults.push(`${name} is a dead letter, and was dropped`);
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
}

function command(text: string, turns: number, act: (real: Real) => Promise<unknown> | void): Step {
  return {
    check: () => true,
    run: async (_, real) => {
      await act(real);
      await real.world.go(turns);
      await check(real);
    },
    toString: () => text,
  };
}

const place = fc.constantFrom(...PLACES);

const anyStep: fc.Arbitrary<Step>[] = [
  fc
    .tuple(fc.integer({ min: 1, max: 25 }), fc.constantFrom('t0', 't1', 't2'), fc.nat(10))
    .map(([count, type, turns]) =>
      command(`append ${count} ${type}`, turns, ({ world }) => world.accept(type, count)),
    ),
  place.map((at) => command(`${at} down`, 1, ({ world }) => void world.down.add(at))),
  fc.constant(
    command('what the other place gets while one is down', 50, async (real) => {
      const { down } = real.world;
      const up = PLACES.find((at) => !down.has(at));
      if (down.size !== 1 || up === undefined) return;
      await real.world.go(100);
      const missing = real.ledger.missing(await deadLettersOf(real)).filter((name) => name.endsWith(up));
      if (missing.length > 0) throw new Error(`${missing.join()} waits for a place that is down`);
    }),
  ),
  place.map((at) => command(`${at} up`, 14, ({ world }) => void world.down.delete(at))),
  place.map((at) => command(`${at} refuses`, 1, ({ world }) => void world.refuses.add(at))),
  place.map((at) => command(`${at} takes all`, 1, ({ world }) => void world.refuses.delete(at))),
  fc
    .tuple(fc.constantFrom('drop' as const, 'retry' as const), fc.integer({ min: 1, max: 3 }))
    .map(([how, of]) => command(`${how} one in ${of}`, 4, ({ world }) => world.handleDeadLetters(how, of))),
  fc.constant(
    command('reload', 4, ({ world }) =>
      world.reload({ ...CONFIG, revision: (world.config.revision ?? 0) + 1 }),
    ),
  ),
  fc.constant(
    command('stop, start', 4, async ({ world }) => {
      await world.stop();
      await world.start(CONFIG);
    }),
  ),
  fc.nat(14).map((turns) =>
    command(`kill after ${turns}`, 4, async ({ world, ledger }) => {
      await world.go(turns);
      // What was confirmed since the last write of the cursor may come again: there was time for one before.
      world.kill();
      for (const name of ledger.fresh) ledger.unsure.add(name);
      await world.start(CONFIG);
    }),
  ),
  fc.constant(
    command('a quiet time', 20, async ({ world, ledger }) => {
      await world.go(20);
      await world.flush();
      ledger.fresh.clear();
    }),
  ),
];

test('what is settled stays settled over reloads, restarts and kills, whatever else waits', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(anyStep, { maxCommands: 40, size: 'max' }), async (commands) => {
      const folder = mkdtempSync(join(BASE, 'millrace-settled-'));
      const ledger = new Ledger();
      const real: Real = { ledger, world: new World(folder, 12, {}, ledger) };
      try {
        await real.world.start(CONFIG);
        await fc.asyncModelRun(() => ({ model: {}, real }), commands);
        real.world.down.clear();
        real.world.refuses.clear();
        await real.world.go(134);
        await check(real);
        expect(ledger.missing(await deadLettersOf(real))).toEqual([]);
        await real.world.stop();
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
    { numRuns: runCount({ quick: 60, long: 300 }), seed: SEED },
  );
});
