import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { verifyArchive } from '../../../src/archive/verify.ts';
import type { ErasureReceipt } from '../../../src/core/erasure.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import { ids, NOW } from '../../sinks/support.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { copiesOf } from '../../support/copies.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { runToItsEnd } from '../../support/killed.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { guessedByBody, guessedById } from './guesses.ts';
import {
  eraseNow,
  erasuresOver,
  eventOf,
  find,
  folderStore,
  openJournal,
  secretOf,
  userId,
} from './support.ts';

const CHILD = fileURLToPath(new URL('crash-child.ts', import.meta.url));
const USERS = [1, 2, 3, 4];
const GONE = [1, 3];
/** Events that retention has cleared from the journal. */
const CLEARED = USERS.map((user) => eventOf(user, 20, { receivedAt: NOW }));
const [CLEARED_GONE, CLEARED_LEFT] = [true, false].map((isGone) =>
  CLEARED.filter((_, index) => GONE.includes(USERS[index] ?? 0) === isGone),
) as [JournalEvent[], JournalEvent[]];
/** Steps of rewriting one file, each named after what has just become true. */
const REWRITE_STEPS = ['found', 'written', 'recorded', 'replaced', 'listed'] as const;
/** Steps of a run around what the stores do. */
const RUN_STEPS = ['begun', 'blocked', 'erased', 'receipted', 'closed'] as const;
const JOURNAL_STEPS = ['journal setAside', 'journal events', 'journal gaps', 'journal scrub'] as const;

let expected: { totals: readonly number[]; left: readonly string[] };

/** Journal, archive of several files and a kept event, tables and an unfinished backfill, all with the same users. */
const copy = copiesOf(async (template) => {
  await acceptAndClear(template);
  const journal = await openJournal(join(template, 'journal'));
  for (const [nth, compress] of ['gzip', 'zstd'].entries()) {
    const batches = [nth, nth + 2].map((n) => batchOf(...USERS.map((user) => eventOf(user, n))));
    for (const { event } of batches.flat()) await journal.accept(event);
    if (nth === 0) batches.push(batchOf(...CLEARED));
    await writeFiles(join(template, 'archive'), batches, {
      options: { compress, rotate: { bytes: 1500 } },
      kept: nth === 0 ? USERS.map((user) => eventOf(user, 9)) : [],
    });
  }
  for (const user of USERS) await journal.quarantine(eventOf(user, 10), []);
  await journal.close();
  const tables = join(template, 'tables');
  mkdirSync(join(tables, '_backfill'), { recursive: true });
  const rows = USERS.map((user) => `${JSON.stringify({ user_id: userId(user), name: secretOf(user) })}\n`);
  for (const name of ['meals', '_rejects', '_backfill'])
    writeFileSync(join(tables, `${name}.ndjson`), rows.join(''));
  const plan = {
    users: USERS.map(userId),
    providers: [],
    since: '2026-01-01',
    until: '2026-01-02',
    windowDays: 0,
  };
  const state = { plan, triggered: {}, without: { [`${userId(1)} made_up`]: 'x' }, followed: false };
  writeFileSync(join(tables, '_backfill', 'state.json'), JSON.stringify(state));
});

beforeAll(async () => {
  const undisturbed = await copy();
  expected = await outcome(undisturbed, await finish(undisturbed));
});

/** Only their ids stay in the journal. */
async function acceptAndClear(template: string): Promise<void> {
  const clock = new ManualClock(NOW);
  const journal = await openJournal(join(template, 'journal'), { retention: 1000, clock });
  await journal.openCursor('archive');
  for (const event of CLEARED) await journal.accept(event);
  journal.moveCursor('archive', CLEARED.length);
  await journal.flush();
  await until('the journal to be cleared', async () => {
    clock.advance(5000);
    return (await journal.status()).events === 0;
  });
  await journal.close();
}

/** Runs until the child kills itself; returns what it had to say. */
const crash = (root: string, step: string, occurrence: number) =>
  runToItsEnd(CHILD, root, step, String(occurrence), ...GONE.map(String));

/** A run after the crash; it asks again, as a person without an answer would. */
async function finish(root: string): Promise<readonly ErasureReceipt[]> {
  const journal = await openJournal(join(root, 'journal'));
  try {
    const stores = [journal, folderStore(join(root, 'archive')), folderStore(join(root, 'tables'))];
    const { erasures } = erasuresOver(join(root, 'erasure'), stores, {
      forget: (events) => journal.forget(events),
      forgotten: (running) => journal.forgotten(running),
      closed: (subjects) => journal.erased(subjects),
    });
    const { receipts, left } = await eraseNow(erasures, ...GONE);
    expect(left).toEqual([]);
    expect((await erasures.list()).waiting).toEqual([]);
    expect((await erasures.list()).erased).toHaveLength(GONE.length);
    // While it is open: the log beside its database counts too.
    expect(guessedById(join(root, 'journal'), CLEARED_GONE)).toBe(0);
    for (const event of CLEARED_LEFT) expect(await journal.accept(event)).toEqual({ status: 'duplicate' });
    return receipts;
  } finally {
    await journal.close();
  }
}

async function outcome(
  root: string,
  receipts: readonly ErasureReceipt[],
): Promise<{ totals: readonly number[]; left: readonly string[] }> {
  expect(find([root], [...GONE.map(userId), ...GONE.map(secretOf)])).toEqual([]);
  const archive = join(root, 'archive');
  expect((await verifyArchive(archive)).differences).toEqual([]);
  const tables = ['meals', '_rejects', '_backfill'].map((name) =>
    readFileSync(join(root, 'tables', `${name}.ndjson`), 'utf8'),
  );
  const left = [...(await ids(archive)), ...tables];
  rmSync(root, { recursive: true });
  return { totals: receipts.map((receipt) => receipt.records_removed), left: left.sort() };
}

test('what the journal keeps of events that are gone from it tells no body, and is known to the end of the window', async () => {
  const root = await copy();
  const folder = join(root, 'journal');
  expect(guessedById(folder, CLEARED)).toBe(CLEARED.length);
  expect(guessedByBody(folder, CLEARED)).toBe(0);
  await finish(root);
  const journal = await openJournal(join(root, 'journal'));
  // No user is blocked here; erased events are not forwarded again.
  for (const event of CLEARED_GONE) expect(await journal.accept(event)).toMatchObject({ status: 'reused' });
  await journal.close();
});

test('undisturbed: four events and one that the journal has cleared, a kept one, a quarantined one, three rows and a place in a plan of each user', () => {
  expect(expected.totals).toEqual(GONE.map(() => 4 + 4 + 1 + 1 + 1 + 3 + 1));
});

/** By number: a kept event, a file of the archive, a plan. */
const KILLS = [1, 4, 8];

test.concurrent.each([
  ...RUN_STEPS.filter((step) => step !== 'receipted' && step !== 'closed').map((step) => [step, 1] as const),
  ...JOURNAL_STEPS.map((step) => [step, 1] as const),
  ...REWRITE_STEPS.flatMap((step) => KILLS.map((occurrence) => [step, occurrence] as const)),
])(
  'kill -9 at %s, the %i. time: the next run finishes it, and the receipts say the same',
  async (step, occurrence) => {
    const root = await copy();
    expect(await crash(root, step, occurrence)).toEqual(['SIGKILL', '']);
    expect(await outcome(root, await finish(root))).toEqual(expected);
  },
);

test.each(['receipted', 'closed'])(
  'kill -9 at %s: the receipts that are there stay as they are',
  async (step) => {
    const root = await copy();
    expect(await crash(root, step, 1)).toEqual(['SIGKILL', '']);
    await finish(root);
    expect((await outcome(root, [])).left).toEqual(expected.left);
  },
);

test('two folders of one name keep their own lists', async () => {
  const root = await temporaryFolder();
  const [one, other] = [erasuresOver(join(root, 'one'), []), erasuresOver(join(root, 'other'), [])];
  await eraseNow(one.erasures, 1);
  const whose = { team: null, user: userId(1).toUpperCase(), clientUser: null };
  expect([one.users.has(whose), other.users.has(whose)]).toEqual([true, false]);
});
