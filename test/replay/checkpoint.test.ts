import { existsSync, rmSync } from 'node:fs';
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

test('killed at each step of removing its state, a replay is in nobody’s way', async () => {
  // As `close` removes them.
  const removals = ['units.ndjson', 'refused.ndjson', 'plan.json', 'state.json'];
  for (let steps = 0; steps <= removals.length; steps += 1) {
    const folder = join(await temporaryFolder(), 'state');
    const first = await Checkpoint.open(folder, order('first'));
    await first.save(DONE);
    await first.close(true);
    for (const name of removals.slice(0, steps)) rmSync(join(folder, name), { force: true });
    const next = await Checkpoint.open(folder, order('next'));
    expect([next.plan.id, next.before]).toEqual(['next', null]);
    await next.close(false);
    expect(existsSync(folder)).toBe(false);
  }
});
