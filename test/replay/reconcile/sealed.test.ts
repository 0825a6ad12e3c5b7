import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { parseTarget } from '../../../src/core/route.ts';
import type { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import type { ReconcileReport } from '../../../src/replay/reconcile/report.ts';
import { KeyErasure } from '../../../src/privacy/seal/key-erasure.ts';
import { contractEvent } from '../../../src/sinks/contract-events.ts';
import { eraseFrom, journalIn } from '../../privacy/erase/support.ts';
import { MASTER, MASTER_TEXT, ringOf } from '../../privacy/seal/support.ts';
import { filesSink, signal, tempFolder } from '../../sinks/support.ts';
import { batchOf } from '../../support/archives.ts';
import { accountOf, operationsOn, received } from './support.ts';

const USERS = 4;
/** Two events of each user, so that what is lost can be fewer than what is erased. */
const EVENTS = USERS * 2;

interface Place {
  readonly journal: SqliteJournal;
  readonly archive: string;
  readonly keys: string;
  readonly account: () => Promise<ReconcileReport>;
}

/** A journal, and a sealed archive with all that it has confirmed. The first two users come before the others, and a copy of the keys is made between. */
async function sealed(): Promise<Place> {
  const [archive, keys] = [tempFolder(), join(tempFolder(), 'keys')];
  const journal = await journalIn(tempFolder());
  await journal.openCursor('archive');
  await journal.acceptUnder([{ match: ['*'], to: [parseTarget('archive')] }]);
  const { sink } = filesSink(archive, { encrypt: { store: keys, masterKey: MASTER_TEXT } });
  await sink.open();
  for (let n = 1; n <= EVENTS; n += 1) {
    const event = received(n, Math.ceil(n / 2));
    await journal.accept(event);
    await sink.send(batchOf(event), signal);
    if (n === EVENTS / 2) copyFileSync(join(keys, 'keys.bin'), join(keys, 'older'));
  }
  await sink.close(signal);
  journal.moveCursor('archive', EVENTS);
  await journal.flush();
  const operations = operationsOn(journal);
  const account = async () => accountOf(operations, archive, await ringOf(keys));
  return { journal, archive, keys, account };
}

/** Takes the last line out of the one file of the archive, as if it had never been written. */
function loseLast(archive: string): void {
  const files = readdirSync(archive, { recursive: true, encoding: 'utf8' });
  const file = join(archive, files.find((name) => name.endsWith('.gz')) ?? '');
  const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n');
  writeFileSync(file, gzipSync(`${lines.slice(0, -1).join('\n')}\n`));
}

test('records that only the newer copy of the keys opens are no proof that the events are there', async () => {
  const { keys, account } = await sealed();
  expect((await account()).differences).toEqual([]);
  rmSync(join(keys, 'keys.bin'));
  copyFileSync(join(keys, 'older'), join(keys, 'keys.bin'));
  const { sinks, differences } = await account();
  const half = EVENTS / 2;
  expect(differences).toMatchObject([{ code: 'unreadable', sink: 'archive', count: half }]);
  const closed = Array.from({ length: half }, (_, n) => contractEvent(half + n + 1).id);
  expect(differences[0]?.ids.toSorted()).toEqual(closed.toSorted());
  expect(sinks[0]).toMatchObject({ received: EVENTS, delivered: half, missing: half, sealed: half });
});

test('records of destroyed keys explain events that the journal has erased, and no missing ones', async () => {
  const { journal, archive, keys, account } = await sealed();
  const stores = [KeyErasure.at('archive', keys, () => MASTER), journal];
  expect(await eraseFrom(tempFolder(), stores, 1)).toMatchObject({ left: [] });
  const erased = { received: EVENTS, delivered: EVENTS - 2, erased: 2, sealed: 2 };
  const whole = await account();
  expect(whole.differences).toEqual([]);
  expect(whole.sinks[0]).toMatchObject({ ...erased, missing: 0 });
  loseLast(archive);
  const { sinks, differences } = await account();
  expect(differences).toMatchObject([
    { code: 'missing', sink: 'archive', count: 1, ids: [contractEvent(EVENTS).id] },
  ]);
  expect(sinks[0]).toMatchObject({ ...erased, delivered: EVENTS - 3, missing: 1 });
});
