import { expect, test, vi } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { skipped } from '../support/requirements.ts';
import { seededRandom } from '../support/random.ts';
import { account } from './accounts.ts';
import { Life } from './life.ts';

// Pairs that nobody thought of: reloads, renames, kills, pauses, moods of targets, erasures, compactions, loads, exports and
// retries come in any order, also at once, and lists that the sender keeps say what has to be where.

const STEPS = Number(process.env['MILLRACE_LIFE_STEPS'] ?? 0);
const lack = STEPS === 0 ? 'needs MILLRACE_LIFE_STEPS=60' : null;

vi.setConfig({ testTimeout: 600_000 + STEPS * 5000 });

test.skipIf(lack !== null)(
  `a receiver's life: each acknowledged event is at every sink it was due at, and in every copy once${skipped(lack)}`,
  async () => {
    const seed = Number(process.env['MILLRACE_LIFE_SEED'] ?? Date.now() % 2 ** 31);
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
  },
);
