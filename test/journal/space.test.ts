import { statfsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/journal/database.ts';
import { Space } from '../../src/journal/space.ts';
import { temporaryFolder } from '../support/folders.ts';

const GIB = 2 ** 30;

test('a look that found plenty of room holds for a moment, and until somebody finds less', async (context) => {
  const path = await temporaryFolder();
  const { bavail, bsize } = statfsSync(path);
  context.skip(bavail * bsize < 2 * GIB, 'needs a disk with 2 GiB');
  const db = openDatabase({ path, create: true }).db;
  onTestFinished(() => void db.close());
  const options = { path, maxBytes: 4 * GIB, retention: 1, dedupWindow: 1, create: true };
  let [held, now] = [0, 1000];
  const log = {
    get bytes() {
      return held;
    },
  };
  const space = new Space(options, { db, events: { log }, scrubber: { heldBytes: 0 } }, () => now);
  expect(space.hadPlenty).toBe(false);

  expect(space.shortage()).toBeNull();
  expect(space.hadPlenty).toBe(true);
  now += 99;
  expect(space.hadPlenty).toBe(true);
  now += 1;
  expect(space.hadPlenty).toBe(false);

  expect(space.shortage()).toBeNull();
  expect(space.hadPlenty).toBe(true);
  // There is room, but somebody could fill it within that time.
  held = 3.5 * GIB;
  expect(space.shortage()).toBeNull();
  expect(space.hadPlenty).toBe(false);

  held = 0;
  expect(space.shortage()).toBeNull();
  held = 4 * GIB;
  expect(space.shortage()).toContain('at most');
  expect(space.hadPlenty).toBe(false);
});
