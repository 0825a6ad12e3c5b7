import { expect, onTestFinished, test } from 'vitest';
import { Places } from '../../src/archive/places.ts';
import type { Operations } from '../../src/core/operations.ts';
import { parseTarget, type Route } from '../../src/core/route.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { reconcile } from '../../src/reconcile/reconcile.ts';
import type { ReconcileReport } from '../../src/reconcile/report.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { erasuresOver, folderStore, userId } from '../erase/support.ts';
import { filesSink, signal, tempFolder, TestClock } from '../sinks/support.ts';
import { until } from '../support/until.ts';
import { operationsOn } from './support.ts';

const EVERYTHING: readonly Route[] = [{ match: ['*'], to: [parseTarget('archive')] }];
const MEALS: readonly Route[] = [{ match: ['daily.'], to: [parseTarget('archive')] }];

async function cleared(journal: SqliteJournal, clock: TestClock): Promise<void> {
  await until('the journal to be cleared', async () => {
    clock.advance(5000);
    return (await journal.status()).events === 0;
  });
}

async function openJournal({ dedupWindow = 1e9 } = {}): Promise<{
  clock: TestClock;
  journal: SqliteJournal;
}> {
  const clock = new TestClock();
  const journal = await SqliteJournal.open({
    path: tempFolder(),
    retention: 1000,
    maxBytes: 1e9,
    dedupWindow,
    create: true,
    clock,
    onFailure: (error) => {
      throw error;
    },
  });
  onTestFinished(() => journal.close());
  return { clock, journal };
}

/** A journal that has cleared away five events, and an archive with the first `archived` of them. */
async function pastRetention(
  archived: number,
  routes: readonly Route[],
): Promise<{ operations: Operations; path: string }> {
  const { clock, journal } = await openJournal();
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  await journal.openCursor('archive');
  await journal.acceptUnder(routes);
  for (let n = 1; n <= 5; n += 1) {
    const event = contractEvent(n);
    await journal.accept(event);
    await journal.accept(event);
    const delivery = { event: { ...event, seq: n, handling: {} }, destination: null };
    if (n <= archived) await sink.send([delivery], signal);
  }
  await sink.close(signal);
  journal.moveCursor('archive', 5);
  await journal.flush();
  await cleared(journal, clock);
  return { operations: operationsOn(journal), path };
}

function account(operations: Operations, path: string): Promise<ReconcileReport> {
  const at = contractEvent(1).receivedAt;
  const hour = Math.floor(at / 3_600_000) * 3_600_000;
  return reconcile({
    logHead: null,
    places: new Places(),
    operations,
    earlier: new Map(),
    sinks: [{ name: 'archive', type: 'files', archive: { path } }],
    window: { since: hour, until: hour + 3_600_000 },
    signal,
  });
}

test('what the journal has cleared away is counted still, and found in the files', async () => {
  const { operations, path } = await pastRetention(5, EVERYTHING);
  const { sinks, differences } = await account(operations, path);
  expect(differences).toEqual([]);
  expect(sinks[0]).toMatchObject({ received: 10, duplicates: 5, delivered: 5, untold: 0, missing: 0 });
});

test('what is in no file is lost where every route names the sink, and untold elsewhere', async () => {
  const lossy = await pastRetention(3, EVERYTHING);
  const everything = await account(lossy.operations, lossy.path);
  expect(everything.differences).toMatchObject([{ code: 'lost', sink: 'archive', count: 2 }]);
  expect(everything.sinks[0]).toMatchObject({ received: 10, delivered: 3, missing: 2 });
  const partial = await pastRetention(3, MEALS);
  const meals = await account(partial.operations, partial.path);
  expect(meals.differences).toEqual([]);
  expect(meals.sinks[0]).toMatchObject({ received: 10, delivered: 3, untold: 2, missing: 0 });
});

/** A journal that soon forgets ids, its archive, and an event as it was accepted once and half a second later. */
async function twoAcceptances() {
  const { clock, journal } = await openJournal({ dedupWindow: 100 });
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  await journal.openCursor('archive');
  await journal.acceptUnder(EVERYTHING);
  const event = contractEvent(1);
  const times = [event, { ...event, receivedAt: event.receivedAt + 500 }];
  const deliver = async (at: number): Promise<void> => {
    await sink.send([{ event: { ...times[at]!, seq: at + 1, handling: {} }, destination: null }], signal);
  };
  return { clock, journal, path, sink, times, deliver };
}

test.each([
  { what: 'in both files', again: [1], held: false, lost: 0 },
  { what: 'one of the two still in the journal', again: [1], held: true, lost: 0 },
  { what: 'in one file, and one record written twice', again: [0, 0], held: false, lost: 1 },
])('what was accepted again after the dedup window: $what', async ({ again, held, lost }) => {
  const { clock, journal, path, sink, times, deliver } = await twoAcceptances();
  await journal.accept(times[0]!);
  await deliver(0);
  journal.moveCursor('archive', 1);
  await journal.flush();
  if (held) await cleared(journal, clock);
  else clock.advance(500);
  expect(await journal.accept(times[1]!)).toMatchObject({ status: 'accepted' });
  for (const at of again) await deliver(at);
  await sink.close(signal);
  journal.moveCursor('archive', 2);
  await journal.flush();
  if (!held) await cleared(journal, clock);
  const { sinks, differences } = await account(operationsOn(journal), path);
  expect(differences.map(({ code, count }) => [code, count])).toEqual(lost === 0 ? [] : [['lost', lost]]);
  expect(sinks[0]).toMatchObject({ received: 2, delivered: 2 - lost, missing: lost });
});

test.each([
  { what: 'each has its record', records: [0, 1], missing: 0, copies: 0 },
  { what: 'the first has two, and the second none', records: [0, 0], missing: 1, copies: 1 },
  { what: 'the second has two, and the first none', records: [1, 1, 1], missing: 1, copies: 2 },
])('of two acceptances that the journal still has $what', async ({ records, missing, copies }) => {
  const { clock, journal, path, sink, times, deliver } = await twoAcceptances();
  for (const accepted of times) {
    expect(await journal.accept(accepted)).toMatchObject({ status: 'accepted' });
    clock.advance(500);
  }
  for (const at of records) await deliver(at);
  await sink.close(signal);
  journal.moveCursor('archive', 2);
  await journal.flush();
  const { sinks, differences } = await account(operationsOn(journal), path);
  expect(differences).toMatchObject(
    missing === 0 ? [] : [{ code: 'missing', count: 1, ids: [times[0]!.id] }],
  );
  expect(sinks[0]).toMatchObject({ received: 2, delivered: 2 - missing, missing, copies });
});

test.each(['a dead letter', 'a dead letter that waits again'])(
  '%s that is erased past retention is not lost',
  async (what) => {
    const { clock, journal } = await openJournal();
    const path = tempFolder();
    const { sink } = filesSink(path);
    await sink.open();
    await journal.openCursor('archive');
    await journal.acceptUnder(EVERYTHING);
    for (let n = 1; n <= 3; n += 1) {
      const event = { ...contractEvent(n), user: userId(n), seq: n, handling: {} };
      await journal.accept(event);
      const letter = {
        sink: 'archive',
        destination: null,
        code: 'made_up',
        reason: '',
        attempts: 1,
        diedAt: 1,
        event,
      };
      if (n === 3) await journal.addDeadLetter(letter);
      else await sink.send([{ event, destination: null }], signal);
    }
    await sink.close(signal);
    journal.moveCursor('archive', 3);
    await journal.flush();
    await cleared(journal, clock);
    if (what.endsWith('again')) await journal.retryDeadLetters({});
    const { erasures } = erasuresOver(tempFolder(), [journal]);
    await erasures.request({ by: 'user', id: userId(3), team: null }, true);
    expect(await erasures.run()).toMatchObject({ left: [], receipts: [{ records_removed: 1 }] });
    const operations = operationsOn(journal);
    const isAccounted = async (): Promise<void> => {
      const { sinks, differences } = await account(operations, path);
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
  const { clock, journal } = await openJournal();
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  await journal.openCursor('archive');
  await journal.acceptUnder(EVERYTHING);
  for (let n = 1; n <= 3; n += 1) {
    const event = { ...contractEvent(n), user: userId(n), seq: n, handling: {} };
    await journal.accept(event);
    if (n !== 2) await sink.send([{ event, destination: null }], signal);
  }
  await sink.close(signal);
  journal.moveCursor('archive', 3);
  const { erasures } = erasuresOver(tempFolder(), [journal, folderStore(path)]);
  await erasures.request({ by: 'user', id: userId(3), team: null }, true);
  expect(await erasures.run()).toMatchObject({ left: [], receipts: [{}] });
  await cleared(journal, clock);
  const { sinks, differences } = await account(operationsOn(journal), path);
  expect(differences).toMatchObject([{ code: 'lost', sink: 'archive', count: 1 }]);
  expect(sinks[0]).toMatchObject({ received: 3, delivered: 1, erased: 1, missing: 1 });
});
