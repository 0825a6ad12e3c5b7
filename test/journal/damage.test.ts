import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { JournalEvent } from '../../src/core/event.ts';
import { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { segmentsOf } from '../support/journal-files.ts';
import { Receiver } from '../support/receiver.ts';

/** Bytes that a disk loses at once. */
const SECTOR = 512;
const bodyOf = (n: number): Buffer => Buffer.from(`{"marker":"made-up-${n}-","more":"${'x'.repeat(1000)}"}`);

async function open(path: string) {
  const damage: { seq: number; id: string | null }[] = [];
  const journal = await SqliteJournal.open({
    path,
    retention: 1e9,
    dedupWindow: 1e9,
    maxBytes: 1e9,
    create: true,
    clock: systemClock,
    onFailure: (error) => {
      throw error;
    },
    onDamage: (record) => damage.push(record),
  });
  onTestFinished(() => journal.close());
  return { journal, damage };
}

/** A closed journal of 60 events of which `change` has altered the file. `at` finds an event's bytes in it. */
async function damaged(change: (file: Buffer, at: (n: number) => number) => void): Promise<string> {
  const path = await temporaryFolder();
  const { journal } = await open(path);
  await Promise.all(
    Array.from({ length: 60 }, (_, n) => journal.accept(makeEvent({ id: `e${n + 1}`, body: bodyOf(n + 1) }))),
  );
  await journal.close();
  const [name = ''] = segmentsOf(path);
  const file = readFileSync(name);
  change(file, (n) => file.indexOf(`made-up-${n}-`));
  writeFileSync(name, file);
  return path;
}

async function readAll(journal: SqliteJournal): Promise<JournalEvent[]> {
  const all: JournalEvent[] = [];
  for (;;) {
    const page = await journal.read(all.at(-1)?.seq ?? 0, { count: 25, bytes: 1e6 });
    if (page.length === 0) return all;
    all.push(...page);
  }
}

test('fault 4: a flipped bit in a journal record is named, kept in quarantine, and delivered to nobody', async () => {
  const path = await damaged((file, at) => {
    file[at(20)] = (file[at(20)] as number) ^ 1;
  });
  const { journal, damage } = await open(path);
  const all = await readAll(journal);
  expect(all.map(({ seq }) => seq)).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
  for (const { seq, body, handling } of all) {
    if (seq === 20) expect({ handling, bytes: body.length }).toEqual({ handling: { only: [] }, bytes: 0 });
    else expect(body).toEqual(bodyOf(seq));
  }
  expect(damage).toEqual([{ seq: 20, id: 'e20' }]);
  // Another sink comes across it too.
  await readAll(journal);
  expect(damage).toHaveLength(1);
  const [kept, ...others] = await journal.listQuarantine({});
  expect(others).toEqual([]);
  expect(kept).toMatchObject({ id: 'e20', reasons: [{ code: 'damaged' }] });
  expect((await journal.status()).damaged).toBe(1);
});

test('fault 4: a sector of the journal that is lost costs the records on it and no others', async () => {
  const path = await damaged((file, at) => {
    const sector = Math.floor(at(30) / SECTOR) * SECTOR;
    file.fill(0xff, sector, sector + SECTOR);
  });
  const { journal, damage } = await open(path);
  const all = await readAll(journal);
  const lost = new Set(damage.map(({ seq }) => seq));
  expect(lost.has(30)).toBe(true);
  expect(lost.size).toBeLessThan(3);
  const readable = all.filter(({ handling }) => handling.only === undefined).map(({ seq }) => seq);
  expect(readable).toEqual(Array.from({ length: 60 }, (_, n) => n + 1).filter((seq) => !lost.has(seq)));
  expect(await journal.accept(makeEvent({ id: 'later' }))).toEqual({ status: 'accepted', seq: 61 });
});

test('fault 4: a receiver starts on a damaged journal, names the record and delivers the rest', async () => {
  const folder = await temporaryFolder();
  // It holds what it gets until the gate is there: the events wait in the journal.
  const gated = { type: new URL('../process/gated-sink.ts', import.meta.url).pathname, folder };
  const config = writeConfig(folder, {
    sinks: { gated },
    routes: [{ match: '*', to: ['gated'] }],
  });
  const first = await ReceiverProcess.start(config);
  const events = Array.from({ length: 12 }, (_, n) => madeUpEvent(n));
  for (const { id, body } of events) expect((await postSigned(first.url, body, { id })).status).toBe(202);
  await first.kill('SIGKILL');
  const [name = ''] = segmentsOf(join(folder, 'journal'));
  const file = readFileSync(name);
  const bad = events[5] as { id: string; body: Buffer };
  const at = file.indexOf(bad.body) + 20;
  file[at] = (file[at] as number) ^ 1;
  writeFileSync(name, file);
  writeFileSync(join(folder, 'gate'), '');
  const second = await Receiver.start(config);
  await second.drained();
  await second.kill('SIGTERM');
  expect(second.logLines()).toContainEqual(
    expect.objectContaining({ msg: 'a journal record is damaged', seq: 6, id: bad.id }),
  );
  const delivered = readFileSync(join(folder, 'delivered'), 'utf8').trim().split('\n');
  expect(delivered).toEqual(events.map(({ id }) => id).filter((id) => id !== bad.id));
});
