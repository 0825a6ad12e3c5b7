import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { runCount, SEED } from '../support/run-count.ts';
import { History } from './compact-history.ts';
import { KINDS } from './compact-support.ts';

/** Of each kind. */
const HISTORIES = runCount({ long: 5 });
const LENGTH = 14;

test.each(
  KINDS.flatMap((kind) => Array.from({ length: HISTORIES }, (_, nth) => [kind, SEED + nth] as const)),
)(
  'in a place of kind %s, history %i: every reader sees each event once, whatever was begun and ended',
  async (kind, seed) => {
    const history = new History(await temporaryFolder(), kind, seed);
    await history.add();
    for (let i = 0; i < LENGTH; i += 1)
      await history.step().catch((error: unknown) => {
        throw new Error(`after ${history.log.join(', ')}: ${String(error)}`, { cause: error });
      });
    expect(history.log.length).toBeGreaterThanOrEqual(LENGTH);
  },
);
