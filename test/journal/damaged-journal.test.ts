import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { NO_ROUTES, type RouteRecord } from '../../src/core/route-record.ts';
import { Store } from '../../src/journal/store.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { editDatabase } from '../support/journal-files.ts';
import {
  type Files,
  filesIn,
  flipped,
  judge,
  makeJournal,
  only,
  put,
  SHARDS,
  silentWith,
  GIVEN,
} from './damaged-files.ts';
import { BOUNDS, NOW } from './support.ts';

// All of them, and those of a killed journal: damaged-bytes.long.test.ts.
test(`fault 48: a flipped bit in one byte in ${SHARDS} of a closed journal's files loses nothing without a word`, async () => {
  const { closed } = makeJournal(join(await temporaryFolder(), 'journal'));
  for (const end of ['.seg', '.note', '.db'])
    expect(await silentWith(flipped(closed, { end, all: end !== '.db', step: SHARDS }))).toEqual([]);
});

function* cutOrGone(files: Files, parts: readonly number[]): Generator<readonly [string, Files]> {
  for (const [name, bytes] of files) {
    yield [`${name} is gone`, new Map([...files].filter(([one]) => one !== name))];
    for (const part of parts) {
      const cut = bytes.subarray(0, Math.floor(bytes.length * part));
      yield [`${name} has ${part} of its bytes`, new Map([...files, [name, cut]])];
      const random = Buffer.from(bytes).fill(0xa5, cut.length, Math.min(cut.length + 512, bytes.length));
      yield [`${name} has other bytes at ${part}`, new Map([...files, [name, random]])];
    }
  }
}

test('faults 48, 49: a file of a journal that is gone, emptied, cut or written over loses nothing without a word', async () => {
  const { closed, killed } = makeJournal(join(await temporaryFolder(), 'journal'));
  expect(await silentWith(cutOrGone(closed, [0, 0.25, 0.5, 0.9, 0.99]))).toEqual([]);
  // What came in the second before a kill, and is cut off, looks like a write that was broken off.
  const newest = [...killed.keys()].findLast((name) => name.endsWith('.seg')) ?? '';
  const others = [...cutOrGone(killed, [0, 0.25, 0.5, 0.9, 0.99])].filter(
    ([what]) => !(what.startsWith(newest) && /0\.[59]/.test(what)),
  );
  expect(await silentWith(others)).toEqual([]);
});

test('fault 48: without database and second note a start is refused, says what waits, and can be recovered', async () => {
  const path = join(await temporaryFolder(), 'journal');
  makeJournal(path);
  for (const name of ['journal.db', 'journal.note']) rmSync(join(path, name));
  const open = (): Store => new Store({ path, ...BOUNDS });
  expect(open).toThrow(/2 segments are there, with 12 events received from .*millrace journal recover/);
  // Refused again, not new.
  expect(judge(path).refused).toBe('journal_damaged');
  const routes: RouteRecord = { ...NO_ROUTES, eras: [{ after: 0, tables: [[]] }] };
  const store = new Store({ path, ...BOUNDS, recovery: { sinks: ['a', 'b'], routes } });
  expect(store.cursors.known()).toEqual([
    ['a', 0],
    ['b', 0],
  ]);
  expect(store.lastSeq).toBe(GIVEN.accepted.length);
  expect(store.account(0, 2 * NOW).counts).toContainEqual(
    expect.objectContaining({ kind: 'accepted', n: 12 }),
  );
  store.close();
  expect(open().repairs).toEqual([]);
});

test('what a person dropped is named as unknown when the key of its hashes is lost, and never kept without it', async () => {
  const path = join(await temporaryFolder(), 'journal');
  makeJournal(path);
  const first = new Store({ path, ...BOUNDS });
  expect(first.setAside.drop('quarantine', {})).toBeGreaterThan(0);
  const known = first.account(0, 2 * NOW).dropped;
  expect(known?.key).toMatch(/^[0-9a-f]{64}$/);
  expect(known?.events.length).toBeGreaterThan(0);
  first.close();
  rmSync(join(path, 'journal.note'));
  const db = new Database(join(path, 'journal.db'));
  db.exec('DELETE FROM checkpoints');
  db.close();
  const routes: RouteRecord = { ...NO_ROUTES, eras: [{ after: 0, tables: [[]] }] };
  const store = new Store({ path, ...BOUNDS, recovery: { sinks: ['a', 'b'], routes } });
  expect(store.repairs.map(({ detail }) => detail)).toContainEqual(
    expect.stringContaining('the key of dropped events is lost'),
  );
  expect(store.account(0, 2 * NOW).dropped).toBeNull();
  store.close();
});

test('fault 49: each segment that is gone is named once, with its events and the sinks that lack them', async () => {
  const path = join(await temporaryFolder(), 'journal');
  const { closed } = makeJournal(path);
  const segments = [...only(closed, '.seg').keys()];
  for (const gone of [segments.slice(0, 1), segments.slice(1), segments]) {
    rmSync(path, { recursive: true });
    mkdirSync(path);
    put(path, new Map([...closed].filter(([name]) => !gone.includes(name))));
    const { account } = judge(path);
    expect(
      account?.damaged?.map(({ what, detail }) => [what, gone.some((name) => detail.includes(name))]),
    ).toEqual(gone.map(() => ['segment', true]));
    const lost = (sink: string): number =>
      (account?.damaged ?? []).reduce((sum, { waiting }) => sum + (waiting[sink] ?? 0), 0);
    // The first five are in the first segment; `a` has had four of them.
    const [first, second] = [gone.includes(segments[0] ?? ''), gone.includes(segments[1] ?? '')];
    expect([lost('a'), lost('b')]).toEqual([
      (first ? 1 : 0) + (second ? 7 : 0),
      (first ? 5 : 0) + (second ? 7 : 0),
    ]);
    const again = judge(path).account?.damaged ?? [];
    expect(again.filter(({ what }) => what === 'segment')).toHaveLength(gone.length);
  }
});

test('what retention has cleared away is not missing, also when it was killed in between', async () => {
  const path = join(await temporaryFolder(), 'journal');
  makeJournal(path);
  const store = new Store({ path, ...BOUNDS });
  for (const sink of ['a', 'b']) {
    store.cursors.open(sink);
    store.cursors.move([[sink, 12]]);
  }
  const first = readdirSync(path).find((name) => name.endsWith('.seg')) ?? '';
  const bytes = readFileSync(join(path, first));
  while (store.maintain(NOW + 1e9));
  expect(readdirSync(path)).not.toContain(first);
  const files = new Map(filesIn(path));
  store.close();
  for (const left of [null, bytes]) {
    const folder = join(await temporaryFolder(), 'journal');
    mkdirSync(folder);
    put(folder, left === null ? files : new Map([...files, [first, left]]));
    const opened = new Store({ path: folder, ...BOUNDS });
    expect(opened.repairs).toEqual([]);
    opened.close();
  }
});

test('a journal of the format before is brought to this one at its first start', async () => {
  const path = join(await temporaryFolder(), 'journal');
  mkdirSync(path);
  const saved = join(import.meta.dirname, 'format-4');
  for (const name of readdirSync(saved))
    put(path, new Map([[name.replace(/\.gz$/, ''), gunzipSync(readFileSync(join(saved, name)))]]));
  const store = new Store({ path, ...BOUNDS });
  expect(store.repairs).toEqual([]);
  expect(store.cursors.known()).toEqual([
    ['a', 4],
    ['b', 0],
  ]);
  expect(store.checkpoints.load('source/partition-0')).toBe('17');
  store.close();
  expect(judge(path, (id) => makeEvent({ id }))).toMatchObject({ refused: null, silent: [] });
});

test('a journal of any other format is refused by its number', async () => {
  const path = join(await temporaryFolder(), 'journal');
  makeJournal(path);
  editDatabase(path, (db) => db.exec('DROP TABLE sums; PRAGMA user_version = 3'));
  expect(() => new Store({ path, ...BOUNDS })).toThrow('journal.db has format 3; this millrace reads 5');
});

test('routes of another format are refused', async () => {
  const path = join(await temporaryFolder(), 'journal');
  makeJournal(path);
  const store = new Store({ path, ...BOUNDS });
  store.checkpoints.save('routes', JSON.stringify({ ...NO_ROUTES, eras: [{ after: 0, tables: [[], []] }] }));
  expect(() => store.routes.read()).toThrow('an era has several tables');
  store.close();
});
