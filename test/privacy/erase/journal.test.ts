import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { ids } from '../../sinks/support.ts';
import { ENVELOPE } from '../../support/defaults.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { createTake } from '../../../src/sources/take.ts';
import { createValidator } from '../../../src/receive/validate/envelope.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { guessedByBody, guessedById } from './guesses.ts';
import {
  eraseFrom,
  eraseNow,
  erasuresOver,
  eventOf,
  find,
  folderStore,
  guarded,
  journalIn,
  secretOf,
  userId,
} from './support.ts';

async function readAll(journal: SqliteJournal): Promise<readonly JournalEvent[]> {
  return journal.read(0, { count: 10_000, bytes: 2 ** 30 });
}

const REASONS = [{ code: 'user_missing', detail: 'made up' }];

/** Events of users 1 to 3, in the journal proper, in quarantine and as dead letters, some of them deleted since. */
async function fill(journal: SqliteJournal): Promise<void> {
  await journal.openCursor('hub');
  const large = Buffer.from(JSON.stringify({ user_id: userId(1), note: secretOf(1).repeat(2000) }));
  for (let n = 0; n < 300; n += 1) {
    for (const user of [1, 2, 3]) {
      const body = n % 100 === 0 && user === 1 ? { body: large } : {};
      void journal.accept(eventOf(user, n, body));
    }
  }
  for (let n = 300; n < 320; n += 1) {
    for (const user of [1, 2]) {
      await journal.quarantine(eventOf(user, n, { user: null, clientUser: null }), REASONS);
      const event = eventOf(user, n);
      const dead = {
        sink: 'hub',
        destination: null,
        code: 'x',
        reason: 'made up',
        attempts: 1,
        diedAt: 1,
        event,
      };
      await journal.addDeadLetter(dead);
    }
  }
  const [first, , , fourth] = await journal.listQuarantine({});
  await journal.dropQuarantine({ keys: [first?.key ?? 0, fourth?.key ?? 0] });
  await journal.dropDeadLetters({ keys: [1, 2, 3] });
}

/** Ids of a user's events that stand in files. */
function idsOf(user: number, folder: string): string[] {
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'));
  return files.flatMap((text) => text.match(new RegExp(`msg_${user}_\\d+`, 'g')) ?? []);
}

test('no byte of a user stays, in free pages and the log neither, and the rest keeps its place', async () => {
  const root = await temporaryFolder();
  const journal = await journalIn(join(root, 'journal'));
  await fill(journal);
  const before = await journal.status();
  const { receipts, left } = await eraseFrom(root, [journal], 1);
  expect(left).toEqual([]);
  const removed = Object.fromEntries(
    (receipts[0]?.items ?? []).map(({ item, removed: count }) => [item, count]),
  );
  expect(removed).toEqual({ events: 300, quarantine: 19, dead_letters: 18 });
  // While it is open: the log beside it counts too.
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
  // Some of them were dropped before; what was noted of that is hashed.
  expect(idsOf(1, join(root, 'journal'))).toEqual([]);
  expect(idsOf(2, join(root, 'journal'))).not.toEqual([]);
  const after = await journal.status();
  expect(after).toMatchObject({ events: before.events, lastSeq: before.lastSeq, firstSeq: before.firstSeq });
  const events = await readAll(journal);
  expect(events.filter(({ user }) => user === userId(2))).toHaveLength(300);
  const empty = events.filter(({ handling }) => handling.erased === true);
  expect(empty).toHaveLength(300);
  expect(
    empty.every(({ handling, id, user }) => handling.only?.length === 0 && id === '' && user === null),
  ).toBe(true);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  await journal.close();
  const again = await journalIn(join(root, 'journal'));
  expect(await readAll(again)).toHaveLength(900);
});

test('events that come in during an erasure, and those handed in before, are dropped and said to be', async () => {
  const root = await temporaryFolder();
  let blocked = false;
  const journal = await journalIn(join(root, 'journal'));
  const ingest = guarded(journal, ({ user }) => blocked && user === userId(1));
  const waiting = ingest.accept(eventOf(1, 1));
  blocked = true;
  const late = ingest.accept(eventOf(1, 2));
  expect(await late).toEqual({ status: 'erased' });
  await journal.settled();
  expect(await waiting).toMatchObject({ status: 'accepted' });
  expect(journal.lastSeq).toBe(1);
  expect(await ingest.quarantine(eventOf(1, 3), REASONS)).toEqual({ status: 'erased' });
  expect(await ingest.accept(eventOf(2, 1))).toMatchObject({ status: 'accepted' });
});

test('nothing is left that confirms a guess of a body, and what comes with an id again is not forwarded', async () => {
  const root = await temporaryFolder();
  const folder = join(root, 'journal');
  let journal = await journalIn(folder);
  await journal.openCursor('hub');
  const events = Array.from({ length: 60 }, (_, n) => eventOf(1 + (n % 2), n));
  await Promise.all(events.map((event) => journal.accept(event)));
  const invalid = [71, 72].map((n) => eventOf(1 + (n % 2), n, { user: null }));
  for (const event of invalid) await journal.quarantine(event, REASONS);
  // Known by two: its id is another event's.
  const reused = eventOf(1, 0, { body: Buffer.from(`{"user_id":"${userId(1)}","made":"up"}`) });
  expect(await journal.accept(reused)).toMatchObject({ status: 'reused' });
  const theirs = [...events, ...invalid, reused].filter(({ id }) => id.startsWith('msg_1_'));
  const others = [...events, ...invalid].filter(({ id }) => !id.startsWith('msg_1_'));
  expect(guessedById(folder, theirs)).toBe(theirs.length);
  expect(guessedByBody(folder, [...theirs, ...others])).toBe(0);
  expect((await eraseFrom(root, [journal], 1)).left).toEqual([]);
  const isKnown = async (): Promise<void> => {
    expect(guessedById(folder, theirs)).toBe(0);
    for (const event of others) expect(await journal.accept(event)).toEqual({ status: 'duplicate' });
  };
  await isKnown();
  await journal.close();
  journal = await journalIn(folder);
  await isKnown();
  // No user is blocked here: a person sees it.
  for (const event of theirs.slice(0, 3))
    expect(await journal.accept(event)).toMatchObject({ status: 'reused' });
});

test('a team bounds it, and a client user id selects by that', async () => {
  const root = await temporaryFolder();
  const journal = await journalIn(join(root, 'journal'));
  const team = '6b0e9a52-0000-4000-8000-eeeeeeeeeeee';
  for (const [n, changes] of [
    {},
    { team },
    { user: userId(1).toUpperCase(), team },
    { user: userId(9), team },
  ].entries())
    await journal.accept(eventOf(1, n, changes));
  const receipts = [{ records_removed: 2 }];
  expect(await eraseFrom(root, [journal], { id: userId(1), team })).toMatchObject({ receipts });
  const byClient = { by: 'client_user', id: 'made-up-client-1' } as const;
  expect(await eraseFrom(root, [journal], byClient)).toMatchObject({ receipts });
});

test('what is dropped is counted, by the hour', async () => {
  const root = await temporaryFolder();
  const journal = await journalIn(join(root, 'journal'));
  const ingest = guarded(journal, ({ user }) => user === userId(1));
  for (const n of [1, 2, 3]) await ingest.accept(eventOf(1, n));
  await ingest.accept(eventOf(2, 1));
  const { counts } = await journal.account(0, Date.UTC(2027, 0));
  expect(counts.map(({ kind, n }) => [kind, n])).toEqual([
    ['accepted', 1],
    ['erased', 3],
  ]);
});

test('what is released from quarantine and turns out to be of an erased user is dropped', async () => {
  const root = await temporaryFolder();
  const journal = await journalIn(join(root, 'journal'), { isErased: ({ user }) => user === userId(1) });
  for (const user of [1, 2]) await journal.quarantine(eventOf(user, 1, { user: null }), REASONS);
  for (const { key, reasons: _, ...event } of await journal.listQuarantine({}))
    await journal.release(key, { ...event, user: userId(event.id === 'msg_1_1' ? 1 : 2) });
  expect((await readAll(journal)).map(({ user }) => user)).toEqual([userId(2)]);
  expect(await journal.listQuarantine({})).toEqual([]);
});

test('dead letters that are retried while their user is erased are erased too', async () => {
  const root = await temporaryFolder();
  const journal = await journalIn(join(root, 'journal'));
  await fill(journal);
  let retried: Promise<number> = Promise.resolve(0);
  const { erasures } = erasuresOver(join(root, 'erasure'), [journal], {
    onStep: (step) => {
      if (step.startsWith('journal ')) retried = journal.retryDeadLetters({});
    },
  });
  expect((await eraseNow(erasures, 1)).left).toEqual([]);
  await retried;
  expect((await readAll(journal)).filter(({ user }) => user === userId(1))).toEqual([]);
  expect(find([root], [userId(1), secretOf(1)])).toEqual([]);
});

function spelt(clientUser: string): Buffer {
  return Buffer.from(`{"client_user_id":"${clientUser}","note":"${secretOf(1)}"}`);
}

test('an id is found however its sender escaped it, and no other user in another case is', async () => {
  const root = await temporaryFolder();
  const archive = join(root, 'archive');
  const id = 'Müller/made-up';
  const journal = await journalIn(join(root, 'journal'));
  const bodies = [String.raw`M\u00fcller/made-up`, String.raw`M\u00FCller\/made-up`, id].map(spelt);
  const other = eventOf(2, 9, {
    user: null,
    clientUser: id.toLowerCase(),
    body: Buffer.from(`{"client_user_id":"${id.toLowerCase()}"}`),
  });
  const unnamed = { user: null, clientUser: null, headers: {} };
  const kept = bodies.map((body, n) => eventOf(1, n, { ...unnamed, clientUser: id, body }));
  await writeFiles(archive, [batchOf(other)], { kept: [...kept, other] });
  for (const [n, body] of bodies.entries()) await journal.quarantine(eventOf(1, n, { ...unnamed, body }), []);
  await journal.accept(other);
  const stores = [folderStore(archive), journal];
  expect(await eraseFrom(root, stores, { by: 'client_user', id })).toMatchObject({
    left: [],
    receipts: [{ records_removed: 6 }],
  });
  expect(find([root], [secretOf(1)])).toEqual([]);
  expect(await ids(archive)).toEqual([other.id]);
  expect((await journal.read(0, { count: 10, bytes: 2 ** 20 })).map((event) => event.id)).toEqual([other.id]);
});

// A message whose encoding is not known, but whose body is plain JSON: it is known by what the body says of user and type, and kept without.
test('what is quarantined from a source for its encoding leaves no digest when its user is erased', async () => {
  const root = await temporaryFolder();
  const journal = await journalIn(join(root, 'journal'));
  const validate = createValidator({
    ...ENVELOPE,
    require: [],
  });
  const take = createTake({ ingest: journal, validate, maxBytes: 1e6 });
  const user = userId(1);
  const body = Buffer.from(
    JSON.stringify({
      event_type: 'daily.data.meal.created',
      team_id: userId(9),
      user_id: user,
      client_user_id: 'c',
      n: 1,
    }),
  );
  await take('hub', [
    { body, encoding: 'x-unknown', properties: { 'idempotency-key': 'msg_1' }, receivedAt: 1 },
  ]);
  const [kept] = await journal.listQuarantine({});
  expect(kept).toMatchObject({ user: null, type: '' });
  expect((await eraseFrom(root, [journal], { id: user })).left).toEqual([]);
  expect(await journal.listQuarantine({})).toEqual([]);
  const key = JSON.stringify(['hub', user, 'daily.data.meal.created', 'msg_1']);
  expect(guessedById(join(root, 'journal'), [{ source: 'hub', id: key, body }])).toBe(0);
});
