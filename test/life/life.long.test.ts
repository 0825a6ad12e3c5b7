import { expect, test, vi } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { seededRandom } from '../support/random.ts';
import { runCount } from '../support/run-count.ts';
import { account } from './accounts.ts';
import { Life } from './life.ts';

// Pairs that nobody thought of: reloads, renames, kills, pauses, moods of targets, erasures, compactions, loads, exports and
// retries come in any order, also at once, and lists that the sender keeps say what has to be where.

const STEPS = runCount({ long: 60 });

vi.setConfig({ testTimeout: 600_000 + STEPS * 5000 });

test("a receiver's life: each acknowledged event is at every sink it was due at, and in every copy once", async () => {
  const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 2 ** 31);
  const life = await Life.begin(await temporaryFolder(), seededRandom(seed));
  await life.live(STEPS);
  await life.heal();
  const wrong = await account(life);
  const posted = [...life.world.posted.values()];
  expect(posted.filter(({ to }) => to !== null).length).toBeGreaterThan(STEPS);
  expect({ seed, steps: life.log, wrong: wrong.slice(0, 20) }).toEqual({
    seed,
    steps: life.log,
    wrong: [],
  });
});
