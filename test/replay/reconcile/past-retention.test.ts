import { expect, test } from 'vitest';
import type { JournalEvent } from '../../../src/core/event.ts';
import { parseTarget, type Route } from '../../../src/core/route.ts';
import type { SqliteJournal, SqliteJournalOptions } from '../../../src/journal/sqlite-journal.ts';
import type { ReconcileReport } from '../../../src/replay/reconcile/report.ts';
import { eraseFrom, folderStore, journalIn } from '../../privacy/erase/support.ts';
import { filesSink, NOW, signal, tempFolder } from '../../sinks/support.ts';
import { batchOf } from '../../support/archives.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { accountOf, operationsOn, received } from './support.ts';

const EVERYTHING: readonly Route[] = [{ match: ['*'], to: [parseTarget('archive')] }];
const MEALS: readonly Route[] = [{ match: ['daily.'], to: [parseTarget('archive')] }];

async function cleared(journal: SqliteJournal, clock: ManualClock): Promise<void> {
  await until('the journal to be cleared', async () => {
    clock.advance(5000);
    return (await journal.status()).events === 0;
  });
}

/** A journal that keeps next to nothing, and an archive beside it that is being written. */
async function beside(more: Partial<SqliteJournalOptions> = {}) {
  const clock = new ManualClock(NOW);
  const limits = { retention: 1000, maxBytes: 1e9, dedupWindow: 1e9, clock, ...more };
  const journal = await journalIn(tempFolder(), limits);
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  await journal.openCursor('archive');
  const send = (event: JournalEvent) => sink.send(batchOf(event), signal);
  /** Nothing is written any more, and the sink has confirmed all up to this one. */
  const close = async (seq: number): Promise<void> => {
    await sink.close(signal);
    journal.moveCursor('archive', seq);
  };
  const account = () => accountOf(operationsOn(journal), path);
  return { clock, journal, path, send, close, account };
}

/** A journal that has cleared away five events, and an archive with the first `archived` of them. */
async function pastRetention(archived: number, routes: readonly Route[]): Promise<ReconcileReport> {
  const { clock, journal, send, close, account } = await beside();
  await journal.acceptUnder(routes);
  for (let n = 1; n <= 5; n += 1) {
    for (let times = 0; times < 2; times += 1) await journal.accept(received(n));
    if (n <= archived) await send(received(n));
  }
  await close(5);
  await journal.flush();
  await cleared(journal, clock);
  return account();
}

test('what the journal has cleared away is counted still, and found in the files', async () => {
  const { sinks, differences } = await pastRetention(5, EVERYTHING);
  expect(differences).toEqual([]);
  expect(sinks[0]).toMatchObject({ received: 10, duplicates: 5, delivered: 5, untold: 0, missing: 0 });
});

test('what is in no file is lost where every route names the sink, and untold elsewhere', async () => {
  const everything = await pastRetention(3, EVERYTHING);
  expect(everything.differences).toMatchObject([{ code: 'lost', sink: 'archive', count: 2 }]);
  expect(everything.sinks[0]).toMatchObject({ received: 10, delivered: 3, missing: 2 });
  const meals = await pastRetention(3, MEALS);
  expect(meals.differences).toEqual([]);
  expect(meals.sinks[0]).toMatchObject({ received: 10, delivered: 3, untold: 2, missing: 0 });
});

/** A journal that soon forgets ids, its archive, and an event as it was accepted once and half a second later. */
async function twoAcceptances() {
  const parts = await beside({ dedupWindow: 100 });
  await parts.journal.acceptUnder(EVERYTHING);
  const event = received(1);
  const times = [event, { ...event, receivedAt: event.receivedAt + 500, seq: 2 }] as const;
  return { ...parts, times };
}

test.each([
  { what: 'in both files', again: [1], held: false, lost: 0 },
  { what: 'one of the two still in the journal', again: [1], held: true, lost: 0 },
  { what: 'in one file, and one record written twice', again: [0, 0], held: false, lost: 1 },
])('what was accepted again after the dedup window: $what', async ({ again, held, lost }) => {
  const { clock, journal, send, close, account, times } = await twoAcceptances();
  await journal.accept(times[0]);
  await send(times[0]);
  journal.moveCursor('archive', 1);
  await journal.flush();
  if (held) await cleared(journal, clock);
  else clock.advance(500);
  expect(await journal.accept(times[1])).toMatchObject({ status: 'accepted' });
  for (const at of again) await send(times[at]!);
  await close(2);
  await journal.flush();
  if (!held) await cleared(journal, clock);
  const { sinks, differences } = await account();
  expect(differences.map(({ code, count }) => [code, count])).toEqual(lost === 0 ? [] : [['lost', lost]]);
  expect(sinks[0]).toMatchObject({ received: 2, delivered: 2 - lost, missing: lost });
});

test.each([
  { what: 'each has its record', records: [0, 1], missing: 0, copies: 0 },
  { what: 'the first has two, and the second none', records: [0, 0], missing: 1, copies: 1 },
  { what: 'the second has two, and the first none', records: [1, 1, 1], missing: 1, copies: 2 },
])('of two acceptances that the journal still has $what', async ({ records, missing, copies }) => {
  const { clock, journal, send, close, account, times } = await twoAcceptances();
  for (const accepted of times) {
    expect(await journal.accept(accepted)).toMatchObject({ status: 'accepted' });
    clock.advance(500);
  }
  for (const at of records) await send(times[at]!);
  await close(2);
  await journal.flush();
  const { sinks, differences } = await account();
  expect(differences).toMatchObject(missing === 0 ? [] : [{ code: 'missing', count: 1, ids: [times[0].id] }]);
  expect(sinks[0]).toMatchObject({ received: 2, delivered: 2 - missing, missing, copies });
});

test.each(['a dead letter', 'a dead letter that waits again'])(
  '%s that is erased past retention is not lost',
  async (what) => {
    const { clock, journal, send, close, account } = await beside();
    await journal.acceptUnder(EVERYTHING);
    for (let n = 1; n <= 3; n += 1) {
      const event = received(n, n);
      await journal.accept(event);
      const deadLetter = {
        sink: 'archive',
        destination: null,
        code: 'made_up',
        reason: '',
        attempts: 1,
        diedAt: 1,
        event,
      };
      if (n === 3) await journal.addDeadLetter(deadLetter);
      else await send(event);
    }
    await close(3);
    await journal.flush();
    await cleared(journal, clock);
    if (what.endsWith('again')) await journal.retryDeadLetters({});
    const erased = { left: [], receipts: [{ records_removed: 1 }] };
    expect(await eraseFrom(tempFolder(), [journal], 3)).toMatchObject(erased);
    const isAccounted = async (): Promise<void> => {
      const { sinks, differences } = await account();
      expect(differences).toEqual([]);
      expect(sinks[0]).toMatchObject({ received: 3, delivered: 2, erased: 1, missing: 0, untold: 0 });
    };
    await isAccounted();
    journal.moveCursor('archive', journal.lastSeq);
    await journal.flush();
    await cleared(journal, clock);
    await isAccounted();
    // By its name of now.
    await journal.succeed('archive', 'lake');
    await journal.succeed('lake', 'archive');
    await isAccounted();
  },
);

test('what a sink confirms right before its user is erased explains that event once, and no loss beside it', async () => {
  const { clock, journal, path, send, close, account } = await beside();
  await journal.acceptUnder(EVERYTHING);
  for (let n = 1; n <= 3; n += 1) {
    await journal.accept(received(n, n));
    if (n !== 2) await send(received(n, n));
  }
  await close(3);
  const erased = { left: [], receipts: [{}] };
  expect(await eraseFrom(tempFolder(), [journal, folderStore(path)], 3)).toMatchObject(erased);
  await cleared(journal, clock);
  const { sinks, differences } = await account();
  expect(differences).toMatchObject([{ code: 'lost', sink: 'archive', count: 1 }]);
  expect(sinks[0]).toMatchObject({ received: 3, delivered: 1, erased: 1, missing: 1 });
});
