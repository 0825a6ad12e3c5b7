import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AsideEntries } from '../../../src/journal/aside-entries.ts';
import { Checkpoints } from '../../../src/journal/checkpoints.ts';
import { openDatabase } from '../../../src/journal/database.ts';
import { insertAside } from '../../../src/journal/schema.ts';
import { SeenIds } from '../../../src/journal/dedup.ts';
import { ErasedAlone } from '../../../src/journal/erased-alone.ts';
import { Eraser, type EraseStep } from '../../../src/journal/erase.ts';
import { Events } from '../../../src/journal/events.ts';
import { encodeRecords } from '../../../src/journal/segments/records.ts';
import { Store } from '../../../src/journal/store.ts';
import { Scrubber } from '../../../src/journal/scrub.ts';
import { Transactions } from '../../../src/journal/transactions.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { segmentsOf } from '../../support/journal-files.ts';
import { eventOf, find, secretOf, userId } from './support.ts';

const NOTHING_LARGE = 0;

/** Erases user 1, step by step. @returns the names of the steps */
function erase(eraser: Eraser, before = (step: EraseStep): EraseStep => step): string[] {
  const subjects = [{ request: 'r1', by: 'user', id: userId(1), team: null }] as const;
  const taken: string[] = [];
  for (let step: EraseStep | null = { do: 'setAside' }; step !== null;) {
    taken.push(step.do);
    step = eraser.perform(subjects, before(step));
  }
  return taken;
}

/** A database too large to be rebuilt while deliveries wait. */
test('where rebuilding would take too long, free pages are written over', async () => {
  const folder = join(await temporaryFolder(), 'journal');
  const db = openDatabase({ path: folder, create: true }).db;
  const insert = db.prepare(insertAside('dead_letters'));
  const put = (user: number, n: number, body?: Buffer): void => {
    const event = eventOf(user, n);
    const { id, type, team, clientUser, receivedAt } = event;
    const about = ['hubs', null, 'made_up', '', 1, 0, 1];
    insert.run(
      ...about,
      id,
      'webhooks',
      type,
      team,
      event.user,
      clientUser,
      receivedAt,
      '{}',
      null,
      body ?? event.body,
    );
  };
  const long = Buffer.from(secretOf(1).repeat(5000));
  db.transaction(() => {
    for (let n = 0; n < 200; n += 1) put(1, n, n % 20 === 0 ? long : undefined);
    for (let n = 0; n < 200; n += 1) for (const user of [1, 2]) put(user, 200 + n);
  })();
  // What was dropped long ago still stands in free pages.
  db.prepare('DELETE FROM dead_letters WHERE key <= 200').run();
  db.pragma('wal_checkpoint(TRUNCATE)');
  expect(find([folder], [secretOf(1)])).not.toEqual([]);
  const size = Number(db.pragma('page_count', { simple: true }));

  const checkpoints = new Checkpoints(db);
  const transactions = new Transactions(db);
  const events = new Events({ db, transactions, checkpoints }, folder, 1e6);
  const alone = new ErasedAlone({ db, cursors: { known: () => [] }, events });
  const eraser = new Eraser({
    db,
    transactions,
    checkpoints,
    events,
    scrubber: new Scrubber(db, transactions, NOTHING_LARGE),
    asideEntries: new AsideEntries(db),
    seen: new SeenIds({ db, transactions, checkpoints }, 1e9, 1024),
    alone,
  });
  const taken = erase(eraser);
  expect([...new Set(taken)]).toEqual(['setAside', 'events', 'gaps', 'scrub']);
  expect(eraser.counts('r1')).toEqual({ events: 0, quarantine: 0, dead_letters: 200 });
  expect(find([folder], [userId(1), secretOf(1)])).toEqual([]);
  expect(find([folder], [secretOf(2)])).not.toEqual([]);
  expect(Number(db.pragma('page_count', { simple: true }))).toBeLessThanOrEqual(size + 2);
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  expect(db.prepare('SELECT count(*) FROM dead_letters').pluck().get()).toBe(200);
  events.log.close();
  db.close();
});

test('a damaged record that is read while its user is erased leaves no copy, and gaps are looked for by segments', async () => {
  const path = await temporaryFolder();
  const bounds = { retention: 1e9, dedupWindow: 1e9, maxBytes: 1e9, create: true };
  const filled = new Store({ path, ...bounds, maxBytes: 16 * 16 * 1024 });
  for (let n = 0; n < 60; n += 1) {
    const records = encodeRecords([
      { event: eventOf(n === 0 ? 1 : 2, n, { body: Buffer.alloc(1000, secretOf(1 + +(n > 0))) }) },
    ]);
    filled.append({ records, count: 1, invalid: null, keys: null }, n);
  }
  filled.close();
  const names = segmentsOf(path);
  expect(names.length).toBeGreaterThan(2);
  const [name = ''] = names;
  const bytes = readFileSync(name);
  const at = bytes.lastIndexOf(secretOf(1));
  bytes[at] = ~(bytes[at] ?? 0);
  writeFileSync(name, bytes);

  const store = new Store({ path, ...bounds });
  const taken = erase(store.eraser, (step) => {
    if (step.do === 'events')
      expect(store.read(0, { count: 1, bytes: 1e6 }, 0).damaged).toMatchObject([{ seq: 1 }]);
    return step.do === 'scrub' ? { do: 'scrub', alone: true } : step;
  });
  expect(taken.filter((step) => step === 'gaps')).toHaveLength(names.length);
  expect(store.eraser.counts('r1')).toEqual({ events: 1, quarantine: 1, dead_letters: 0 });
  store.close();
  expect(find([path], [userId(1), secretOf(1)])).toEqual([]);
  expect(find([path], [secretOf(2)])).not.toEqual([]);
});
