import { copyFileSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Segment } from '../../src/journal/segments/segment.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { FIRST_SEGMENT, segmentsOf } from '../support/journal-files.ts';
import { allIn, append, batchOf, NOW, openStore } from './support.ts';

const COLUMNS = 'id, source, type, team, user, client_user, received_at, headers, handling, body';
const EVENT = `id TEXT NOT NULL, source TEXT NOT NULL, type TEXT NOT NULL, team TEXT, user TEXT, client_user TEXT,
  received_at INTEGER NOT NULL, headers TEXT NOT NULL, handling TEXT, body BLOB NOT NULL`;
/** As format 3 had them. */
const TABLES = `
  CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, upto INTEGER NOT NULL, crc INTEGER, ${EVENT});
  CREATE TABLE damaged (seq INTEGER PRIMARY KEY, id TEXT, found_at INTEGER NOT NULL);
  CREATE TABLE cursors (sink TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE checkpoints (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE recent_ids (n INTEGER PRIMARY KEY, hash BLOB NOT NULL, at INTEGER NOT NULL);
  CREATE TABLE sealed_ids (generation INTEGER, hash BLOB, age INTEGER, PRIMARY KEY (generation, hash)) WITHOUT ROWID;
  CREATE TABLE hour_counts (
    hour INTEGER NOT NULL, kind TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (hour, kind)) WITHOUT ROWID;
  PRAGMA user_version = 3;`;
const FIRST = 101;
const LAST = 900;
const ERASED = 350;
const DAMAGED = 500;
const GONE = 700;

const eventAt = (seq: number) =>
  makeEvent({
    id: `id-${seq}`,
    receivedAt: NOW + seq,
    user: seq % 3 === 0 ? null : `user-${seq}`,
    body: Buffer.alloc(seq % 200 === 0 ? 3_000_000 : seq % 300, `<${seq}>`),
  });

/** A journal of format 3: some of its events are cleared away, one is erased, one is damaged, one cannot be found. */
async function former(): Promise<string> {
  const path = await temporaryFolder();
  const db = new Database(join(path, 'journal.db'));
  db.pragma('journal_mode = WAL');
  db.exec(TABLES);
  const insert = db.prepare(`INSERT INTO events (seq, upto, crc, ${COLUMNS}) VALUES (${'?,'.repeat(12)}?)`);
  db.transaction(() => {
    for (let seq = FIRST; seq <= LAST; seq += 1) {
      if (seq === GONE) continue;
      const { id, source, type, team, user, clientUser, receivedAt, headers, body } = eventAt(seq);
      const handling = seq === 300 ? '{"only":["a:b"],"replayId":"r"}' : null;
      const row = [id, source, type, team, user, clientUser, receivedAt, JSON.stringify(headers), handling];
      const crc = crc32(body, crc32(row.map(String).join('\n')));
      if (seq === ERASED) {
        const nobody = ['', source, '', null, null, null, receivedAt, '{}', '{"only":[],"erased":true}'];
        insert.run(seq, 0, null, ...nobody, Buffer.alloc(60));
      } else insert.run(seq, 0, seq === 102 ? null : (crc ^ (seq === DAMAGED ? 1 : 0)) >>> 0, ...row, body);
    }
    db.prepare('INSERT INTO cursors VALUES (?, ?)').run('archive', 450);
    db.prepare('INSERT INTO hour_counts VALUES (1, ?, 7)').run('accepted');
  })();
  db.close();
  return path;
}

function expectCarriedOver(path: string): void {
  const store = openStore(path);
  const all = allIn(store);
  expect(all.map(({ seq }) => seq)).toEqual(
    Array.from({ length: LAST - FIRST + 1 }, (_, index) => FIRST + index),
  );
  for (const { seq, handling, body, ...event } of all) {
    const expected = eventAt(seq);
    if (seq === ERASED) expect(handling).toEqual({ only: [], erased: true });
    else if (seq === DAMAGED || seq === GONE) expect(handling).toEqual({ only: [] });
    else
      expect({ ...event, isWhole: body.equals(expected.body) }).toEqual({
        ...expected,
        body: undefined,
        isWhole: true,
      });
    if (seq === 300) expect(handling).toEqual({ only: ['a:b'], replayId: 'r' });
  }
  expect(store.status(NOW)).toMatchObject({ firstSeq: FIRST, lastSeq: LAST, damaged: 2, quarantined: 1 });
  expect(store.cursors.known()).toEqual([['archive', 450]]);
  expect(store.account(0, 2 * NOW).counts).toEqual([{ hour: 3_600_000, kind: 'accepted', n: 7 }]);
  expect(append(store, 'new')).toEqual([LAST + 1]);
  store.close();
}

test('a journal of format 3 has the same events under the same seqs, and one owner still', async () => {
  const path = await former();
  expectCarriedOver(path);
  const db = new Database(join(path, 'journal.db'));
  expect(db.pragma('user_version', { simple: true })).toBe(4);
  expect(db.prepare(`SELECT name FROM sqlite_master WHERE name = 'events'`).all()).toEqual([]);
  db.close();
  expect(allIn(openStore(path))).toHaveLength(LAST + 1 - FIRST + 1);
});

test('a page of the former journal that cannot be read costs the events on it, and no start', async () => {
  const path = await former();
  const name = join(path, 'journal.db');
  const file = readFileSync(name);
  const page = Math.floor(file.indexOf('<250>') / 4096) * 4096;
  file.fill(0xff, page, page + 16);
  writeFileSync(name, file);
  const store = openStore(path);
  const all = allIn(store);
  const lost = all.filter(({ id }) => id === '').map(({ seq }) => seq);
  expect(lost).toContain(250);
  expect(lost.length).toBeLessThan(20);
  expect(all.map(({ seq }) => seq)).toEqual(
    Array.from({ length: LAST - FIRST + 1 }, (_, index) => FIRST + index),
  );
  expect(append(store, 'new')).toEqual([LAST + 1]);
  store.close();
  const db = new Database(name);
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  db.close();
  expect(readFileSync(name).includes('<251>')).toBe(false);
});

test('killed in any step, it is carried over by the next start all the same', async () => {
  const path = await former();
  const root = await temporaryFolder();
  const copies: string[] = [];
  const copy = (): void => {
    const to = join(root, String(copies.length));
    cpSync(path, to, { recursive: true });
    copies.push(to);
  };
  const write = Segment.prototype.append;
  const written = vi.spyOn(Segment.prototype, 'append').mockImplementation(function (
    this: Segment,
    ...args: Parameters<Segment['append']>
  ) {
    copy();
    write.apply(this, args);
    copy();
  });
  const close = vi.spyOn(Segment.prototype, 'close').mockImplementation(copy);
  onTestFinished(() => void vi.restoreAllMocks());
  openStore(path);
  written.mockRestore();
  close.mockRestore();
  expect(copies.length).toBeGreaterThan(3);
  for (const one of copies) expectCarriedOver(one);
});

test('segments beside a database of format 3 that did not make them are not removed', async () => {
  const path = await former();
  const other = await temporaryFolder();
  const store = openStore(other);
  store.append(batchOf([makeEvent()]), NOW);
  store.close();
  copyFileSync(join(other, FIRST_SEGMENT), join(path, FIRST_SEGMENT));
  expect(() => openStore(path)).toThrow(expect.objectContaining({ code: 'journal_unreadable' }));
  expect(existsSync(segmentsOf(path)[0] ?? '')).toBe(true);
});
