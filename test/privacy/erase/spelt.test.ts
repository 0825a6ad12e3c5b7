import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { verifyArchive } from '../../../src/archive/verify.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import { ErasedUsers } from '../../../src/privacy/erase/erased-users.ts';
import type { LocalErasures } from '../../../src/privacy/erase/local-erasures.ts';
import type { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { SPELLINGS, standing } from './spellings.ts';
import { eraseNow, erasuresOver, eventOf, folderStore, guarded, journalIn } from './support.ts';

const NAMES = Object.keys(SPELLINGS);
const ALL = Object.values(SPELLINGS);

const secret = (user: number, index: number): string => `made-up-secret-${index}-of-user-${user}-`;
const secrets = (user: number): string[] => ALL.map((_, index) => secret(user, index));
const ids = (user: number): string[] => [...new Set(ALL.map(({ id }) => id(user)))];

function bodyOf(user: number, index: number): Buffer {
  const { id, write } = ALL[index] as (typeof ALL)[number];
  return write(id(user), secret(user, index));
}

/** Events of no user, each with the id written in another way. */
function speltEvents(user: number, run: number, changes: Partial<JournalEvent> = {}): JournalEvent[] {
  const unnamed = { user: null, clientUser: null, headers: {} };
  return ALL.map((_, index) => {
    const id = `spelt_${user}_${run}_${index}`;
    return eventOf(user, index, { ...unnamed, id, body: bodyOf(user, index), ...changes });
  });
}

/** Erases every id of user 1. Before, all of both users stands there; afterwards all of user 2, and nothing of user 1. */
async function eraseAll(root: string, erasures: LocalErasures): Promise<void> {
  const data = join(root, 'data');
  expect(standing(data, [...secrets(1), ...secrets(2)])).toEqual([...secrets(1), ...secrets(2)]);
  const subjects = new Map(ALL.map(({ by, id }) => [id(1), by]));
  const { left, receipts } = await eraseNow(erasures, ...Array.from(subjects, ([id, by]) => ({ by, id })));
  expect(left).toEqual([]);
  expect(receipts.reduce((sum, { records_removed: count }) => sum + count, 0)).toBe(ALL.length);
  expectGone(data);
  expect(standing(data, secrets(2))).toEqual(secrets(2));
}

function expectGone(data: string): void {
  const left = standing(data, [...secrets(1), ...ids(1)]);
  expect(left.map((text) => NAMES[secrets(1).indexOf(text)] ?? text)).toEqual([]);
}

const REASONS = [{ code: 'user_missing', detail: 'made up' }];
const MALFORMED = [{ code: 'user_malformed', detail: 'made up' }];
const DEAD = { sink: 'hub', destination: null, code: 'x', reason: 'made up', attempts: 1, diedAt: 1 };
const NO_ID = { user: 'no id' };

const INTO_JOURNAL: Readonly<Record<string, (journal: SqliteJournal, user: number) => Promise<unknown>>> = {
  events: (journal, user) => Promise.all(speltEvents(user, 1).map((event) => journal.accept(event))),
  quarantine: (journal, user) =>
    Promise.all(speltEvents(user, 1).map((event) => journal.quarantine(event, REASONS))),
  'quarantine, with something for a user that is no id': (journal, user) =>
    Promise.all(speltEvents(user, 1, NO_ID).map((event) => journal.quarantine(event, MALFORMED))),
  'dead letters': (journal, user) =>
    Promise.all(speltEvents(user, 1).map((event) => journal.addDeadLetter({ ...DEAD, event }))),
};

test.each(Object.entries(INTO_JOURNAL))(
  'a user is erased from the journal however the id is written, and so kept out: %s',
  async (_, put) => {
    const root = await temporaryFolder();
    const users = ErasedUsers.open(join(root, 'erasure'));
    const journal = await journalIn(join(root, 'data', 'journal'), { isErased: users.isErased });
    for (const user of [1, 2]) await put(journal, user);
    const { erasures } = erasuresOver(join(root, 'erasure'), [journal], { users });
    await eraseAll(root, erasures);

    // As another process reads the list.
    users.reload();
    const ingest = guarded(journal, users.isErased);
    const again = [
      ...speltEvents(1, 2).map((event) => ingest.accept(event)),
      ...speltEvents(1, 3).map((event) => ingest.quarantine(event, REASONS)),
      ...speltEvents(1, 4, NO_ID).map((event) => ingest.quarantine(event, MALFORMED)),
    ];
    const statuses = (await Promise.all(again)).map(({ status }) => status);
    expect(statuses.map((status, index) => [NAMES[index % NAMES.length], status])).toEqual(
      statuses.map((__, index) => [NAMES[index % NAMES.length], 'erased']),
    );
    for (const event of speltEvents(1, 5)) await journal.addDeadLetter({ ...DEAD, event });
    for (const event of speltEvents(2, 2))
      expect(await ingest.accept(event)).toMatchObject({ status: 'accepted' });
    expectGone(join(root, 'data'));
  },
);

const spelt = (): JournalEvent[] => [1, 2].flatMap((user) => speltEvents(user, 1));

async function send(root: string, compress: string): Promise<void> {
  await writeFiles(join(root, 'data'), [batchOf(...spelt())], { options: { compress } });
}

async function keep(root: string, compress: string): Promise<void> {
  await writeFiles(join(root, 'data'), [], { options: { compress }, kept: spelt() });
}

/** A table for each way of writing, with a row of each user. Text that is no JSON stands in a row as a text. */
function tables(root: string, extension: string, pack: (bytes: Buffer) => Buffer): void {
  mkdirSync(join(root, 'data'));
  for (const index of ALL.keys()) {
    const rows = [1, 2].map((user) => bodyOf(user, index));
    const isWide = rows.some((row) => row.includes(0));
    const lines = rows.flatMap((row) => [
      isWide || row[0] === 0x7b ? row : Buffer.from(JSON.stringify(row.toString())),
      Buffer.from(isWide ? '\n\0' : '\n'),
    ]);
    writeFileSync(join(root, 'data', `rows_${index}.ndjson${extension}`), pack(Buffer.concat(lines)));
  }
}

const INTO_FILES: Readonly<Record<string, (root: string) => Promise<void> | void>> = {
  'an archive': (root) => send(root, 'none'),
  'an archive, gzip': (root) => send(root, 'gzip'),
  'an archive, zstd': (root) => send(root, 'zstd'),
  'claim checks': (root) => keep(root, 'none'),
  'claim checks, gzip': (root) => keep(root, 'gzip'),
  tables: (root) => tables(root, '', (bytes) => bytes),
  'tables, gzip': (root) => tables(root, '.gz', (bytes) => gzipSync(bytes)),
  'tables, zstd': (root) => tables(root, '.zst', (bytes) => zstdCompressSync(bytes)),
};

test.each(Object.entries(INTO_FILES))(
  'a user is erased from files however the id is written: %s',
  async (place, put) => {
    const root = await temporaryFolder();
    await put(root);
    const { erasures } = erasuresOver(join(root, 'erasure'), [folderStore(join(root, 'data'))]);
    await eraseAll(root, erasures);
    const isArchive = !place.startsWith('tables');
    expect(isArchive ? (await verifyArchive(join(root, 'data'))).differences : []).toEqual([]);
  },
);
