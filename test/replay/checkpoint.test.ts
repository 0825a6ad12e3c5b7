import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkpoint } from '../../src/replay/checkpoint.ts';
import { temporaryFolder } from '../support/folders.ts';

const nothing = async function* (): AsyncGenerator<never> {};
const DONE = {
  place: {},
  counts: {},
  done: true,
} as unknown as Parameters<Checkpoint['save']>[0];
const order = (fingerprint: string) => ({ fingerprint, id: fingerprint, resume: false, list: nothing });

/** The state of a replay that is done and was killed after so many steps of removing it, in the order of `close`. */
async function killedAfter(steps: number): Promise<string> {
  const folder = join(await temporaryFolder(), 'state');
  const first = await Checkpoint.open(folder, order('first'));
  await first.save(DONE);
  await first.close(true);
  const removals = ['units.ndjson', 'refused.ndjson', 'plan.json', 'state.json'];
  for (const name of removals.slice(0, steps)) rmSync(join(folder, name), { force: true });
  return folder;
}

test.each([0, 1, 2, 3, 4])(
  'killed after %i steps of removing its state, a replay blocks no other',
  async (steps) => {
    const folder = await killedAfter(steps);
    const next = await Checkpoint.open(folder, order('next'));
    expect([next.plan.id, next.before]).toEqual(['next', null]);
    await next.close(false);
    expect(existsSync(folder)).toBe(false);
  },
);

test('killed while it listed what there is, a replay begins when it is resumed', async () => {
  const folder = join(await temporaryFolder(), 'state');
  mkdirSync(folder);
  writeFileSync(join(folder, 'units.ndjson'), '{"kind":"fi');
  const next = await Checkpoint.open(folder, { ...order('next'), resume: true });
  expect([next.plan, await Array.fromAsync(next.units(0))]).toEqual([
    { id: 'next', fingerprint: 'next', units: 0, bytes: 0 },
    [],
  ]);
  await next.close(false);
});

test.each([1, 2])('killed after %i steps, a resumed replay has nothing left to read', async (steps) => {
  const resumed = await Checkpoint.open(await killedAfter(steps), { ...order('first'), resume: true });
  expect(await Array.fromAsync(resumed.units(0))).toEqual([]);
  await resumed.close(false);
});

test.each([3, 4])(
  'killed after %i steps, a replay of everything is not begun again by --resume',
  async (steps) => {
    const resuming = Checkpoint.open(await killedAfter(steps), { ...order('first'), resume: true });
    await expect(resuming).rejects.toThrow('nothing to resume');
  },
);

test('a list of inputs that lacks some is an error, not the end of the replay', async () => {
  const folder = join(await temporaryFolder(), 'state');
  const units = [1, 2, 3].map((n) => ({ kind: 'unreadable', where: `input-${n}`, reason: 'made up' }));
  const list = async function* () {
    yield* units;
  } as unknown as typeof nothing;
  await (await Checkpoint.open(folder, { ...order('first'), list })).close(true);
  const resumed = async (): Promise<unknown[]> => {
    const checkpoint = await Checkpoint.open(folder, { ...order('first'), resume: true });
    try {
      return await Array.fromAsync(checkpoint.units(1));
    } finally {
      await checkpoint.close(true);
    }
  };
  expect(await resumed()).toEqual(units.slice(1));
  const file = join(folder, 'units.ndjson');
  const whole = readFileSync(file, 'utf8');
  const damaged = [whole.slice(0, -1), whole.slice(0, whole.lastIndexOf('{')), whole.replace('{', '?'), null];
  for (const text of damaged) {
    if (text === null) rmSync(file);
    else writeFileSync(file, text);
    await expect(resumed()).rejects.toMatchObject({ code: 'file_unusable' });
  }
});
