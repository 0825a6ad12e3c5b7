import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createOperations } from '../../src/observe/admin/operations.ts';
import { MillraceError } from '../../src/core/errors.ts';
import { SqliteJournal, type SqliteJournalOptions } from '../../src/journal/sqlite-journal.ts';
import { makeEvent } from '../support/events.ts';
import { DAY, ManualClock } from '../support/manual-clock.ts';
import { temporaryFolder } from '../support/folders.ts';
import { roomyJournal } from '../support/inline-journal.ts';
import { segmentsOf } from '../support/journal-files.ts';

const ALL = { count: 1000, bytes: 1e9 };

async function open(path: string, overrides: Partial<SqliteJournalOptions> = {}): Promise<SqliteJournal> {
  const weeks = { retention: 7 * DAY, dedupWindow: 7 * DAY };
  const journal = await SqliteJournal.open(roomyJournal(path, systemClock, { ...weeks, ...overrides }));
  onTestFinished(() => journal.close());
  return journal;
}

describe('append and read', () => {
  test('events come back in order, byte for byte, from memory and from disk alike', async () => {
    const path = await temporaryFolder();
    const odd = Buffer.from([0, 255, 10, 13, 0xed, 0xa0, 0x80]);
    const events = [
      makeEvent({ body: odd }),
      makeEvent({ team: null, user: null, clientUser: null, body: Buffer.alloc(0) }),
      makeEvent({ body: Buffer.alloc(70_000, odd) }),
      makeEvent(),
    ];
    const journal = await open(path);
    const results = await Promise.all(events.map((event) => journal.accept(event)));
    expect(results).toEqual([1, 2, 3, 4].map((seq) => ({ status: 'accepted', seq })));
    const expected = events.map((event, index) => ({ ...event, seq: index + 1, handling: {} }));
    expect(await journal.read(0, ALL)).toEqual(expected);
    await journal.close();
    const again = await open(path);
    expect(await again.read(0, ALL)).toEqual(expected);
    expect(await again.read(1, { count: 1, bytes: 1 })).toEqual(expected.slice(1, 2));
    expect(await again.read(0, { count: 9, bytes: 1000 })).toEqual(expected.slice(0, 2));
    expect(await again.read(2, { count: 9, bytes: 1000 })).toEqual(expected.slice(2, 3));
    expect(await again.read(4, ALL)).toEqual([]);
  });

  test('a listener that throws is a failure of the journal, and keeps neither senders nor other listeners from theirs', async () => {
    const failures: string[] = [];
    const journal = await open(await temporaryFolder(), {
      onFailure: ({ detail }) => failures.push(detail),
    });
    const notified: number[] = [];
    journal.subscribe(() => {
      throw new Error('made up');
    });
    journal.subscribe((seq) => notified.push(seq));
    const accepted = journal.accept(makeEvent());
    expect(await accepted).toEqual({ status: 'accepted', seq: 1 });
    await journal.settled();
    expect({ notified, failures }).toEqual({ notified: [1], failures: [expect.stringContaining('made up')] });
    await expect(journal.accept(makeEvent())).rejects.toMatchObject({ code: 'journal_failed' });
  });

  test('ids that stand in the segments only are known to one that is opened to look, too', async () => {
    const path = await temporaryFolder();
    const event = makeEvent();
    const journal = await open(path);
    await journal.accept(event);
    await journal.close();
    const command = await open(path, { create: false, maintained: false });
    expect(await command.heads(0)).toMatchObject([{ id: event.id }]);
    expect(await command.accept(event)).toEqual({ status: 'duplicate' });
    expect(await command.accept({ ...event, body: Buffer.from('{}') })).toEqual({ status: 'reused', seq: 0 });
  });

  test('fault 16: an id is accepted once, in one commit, later, and after a restart', async () => {
    const path = await temporaryFolder();
    const event = makeEvent();
    const journal = await open(path);
    const together = await Promise.all([journal.accept(event), journal.accept(event)]);
    expect(together.map(({ status }) => status)).toEqual(['accepted', 'duplicate']);
    expect(await journal.accept(event)).toEqual({ status: 'duplicate' });
    expect(await journal.quarantine(event, [])).toEqual({ status: 'duplicate' });
    await journal.close();
    const again = await open(path);
    expect(await again.accept(event)).toEqual({ status: 'duplicate' });
    expect(await again.read(0, ALL)).toHaveLength(1);
  });

  test('subscribers hear the newest seq after the commit', async () => {
    const journal = await open(await temporaryFolder());
    const heard: number[] = [];
    const stop = journal.subscribe((seq) => heard.push(seq));
    await journal.accept(makeEvent());
    stop();
    await journal.accept(makeEvent());
    expect(heard).toEqual([1]);
  });
});

describe('cursors', () => {
  test('a new sink starts at the end, a known one where it stood', async () => {
    const path = await temporaryFolder();
    const journal = await open(path);
    expect(await journal.openCursor('early')).toBe(0);
    await journal.accept(makeEvent());
    await journal.accept(makeEvent());
    expect(await journal.openCursor('late')).toBe(2);
    journal.moveCursor('early', 1);
    await journal.close();
    const again = await open(path);
    expect(await again.openCursor('early')).toBe(1);
    expect((await again.status()).cursors).toMatchObject([
      { sink: 'early', seq: 1, backlog: 1 },
      { sink: 'late', seq: 2, backlog: 0 },
    ]);
  });
});

describe('cursors of sinks that go', () => {
  test('a late call after the cursor was removed moves no cursor, of the sink that is there again neither', async () => {
    const path = await temporaryFolder();
    const journal = await open(path);
    const seq = async (sink: string): Promise<number | undefined> =>
      new Map(await journal.cursors()).get(sink);
    await journal.openCursor('hubs');
    await journal.openCursor('other');
    await journal.accept(makeEvent());
    await journal.leave('hubs');
    journal.moveCursor('hubs', 1);
    expect(await seq('hubs')).toBeUndefined();
    await journal.accept(makeEvent());
    expect(await journal.openCursor('hubs')).toBe(2);
    journal.moveCursor('hubs', 1, () => 'made-up note of the earlier one');
    await journal.flush();
    expect([await seq('hubs'), await journal.ahead('hubs')]).toEqual([2, { note: null, died: [] }]);
    await journal.succeed('hubs', 'new-hubs');
    journal.moveCursor('hubs', 2);
    expect(await seq('hubs')).toBeUndefined();
    expect(await journal.openCursor('new-hubs')).toBe(2);
    await journal.close();
    journal.moveCursor('other', 2);
    const again = await open(path);
    expect(await again.openCursor('other')).toBe(0);
  });

  test('a sink exchanged before it has had anything continues where it was placed', async () => {
    const journal = await open(await temporaryFolder());
    await journal.openCursor('hubs');
    await journal.accept(makeEvent());
    journal.releaseCursor('hubs');
    // Its successor cannot be opened, and the one before is brought back.
    expect(await journal.openCursor('hubs')).toBe(0);
    journal.releaseCursor('hubs', true);
    expect(await journal.openCursor('hubs')).toBe(0);
  });

  test('a sink that never came to be leaves no cursor', async () => {
    const journal = await open(await temporaryFolder());
    await journal.accept(makeEvent());
    expect(await journal.openCursor('hubs')).toBe(1);
    journal.releaseCursor('hubs', true);
    await journal.accept(makeEvent());
    expect(await journal.openCursor('hubs')).toBe(2);
  });
});

function operationsOf(
  journal: SqliteJournal,
  parts: Partial<Parameters<typeof createOperations>[0]>,
): ReturnType<typeof createOperations> {
  return createOperations({
    journal,
    validate: () => ({ isValid: true, envelope: makeEvent() }),
    pid: null,
    sinks: () => [],
    hasSink: () => true,
    dropSink: () => Promise.reject(new Error('not here')),
    noteDropped: () => Promise.resolve(),
    ...parts,
  });
}

describe('quarantine and dead letters', () => {
  test('a dead letter whose sink is configured no longer stays where it is', async () => {
    const journal = await open(await temporaryFolder());
    await journal.accept(makeEvent());
    const [event] = await journal.read(0, ALL);
    const about = { code: 'c', reason: 'r', attempts: 1, diedAt: 5, event: event! };
    for (const target of ['hubs', 'gone', 'hubs:events']) {
      const [sink = '', destination = null] = target.split(':');
      await journal.addDeadLetter({ ...about, sink, destination });
    }
    const operations = operationsOf(journal, { hasSink: (name) => name === 'hubs' });
    expect(await operations.retryDeadLetters({})).toEqual({ retried: 2, kept: 1 });
    expect(await journal.listDeadLetters({})).toMatchObject([{ sink: 'gone' }]);
  });

  test('of two who drop some of the same at once, each notes what it has dropped', async () => {
    const journal = await open(await temporaryFolder());
    const headers = { 'millrace-salt': 'A'.repeat(22) };
    const events = Array.from({ length: 12 }, () => makeEvent({ team: null, headers }));
    await Promise.all(events.map((event) => journal.quarantine(event, [])));
    const keys = (await journal.listQuarantine({})).map(({ key }) => key);
    const noted: Record<'begun' | 'done', string[]> = { begun: [], done: [] };
    const operations = operationsOf(journal, {
      noteDropped: async (notes) => {
        for (const { state, entries } of notes) noted[state].push(...entries);
      },
    });
    const drops = [keys.slice(0, 8), keys.slice(4)].map((some) => operations.dropQuarantine({ keys: some }));
    expect(await Promise.all(drops)).toEqual([8, 4]);
    expect(noted.begun).toHaveLength(12);
    expect(noted.done.toSorted()).toEqual(noted.begun.toSorted());
  });

  test('a quarantined event is kept whole and can be released or dropped', async () => {
    const journal = await open(await temporaryFolder());
    const event = makeEvent({ team: null });
    const reasons = [{ code: 'team_missing', detail: 'team_id is missing' }];
    await journal.quarantine(event, reasons);
    await journal.quarantine(makeEvent(), reasons);
    const [first, second] = await journal.listQuarantine({});
    expect(first).toMatchObject({ ...event, reasons });
    expect(
      await Promise.all([journal.release(first!.key, event), journal.release(first!.key, event)]),
    ).toEqual([true, false]);
    const released = { released: true };
    expect(await journal.read(0, ALL)).toMatchObject([{ id: event.id, seq: 1, handling: released }]);
    expect(await journal.dropQuarantine({ keys: [second!.key] })).toBe(1);
    expect(await journal.listQuarantine({})).toEqual([]);
  });

  test('a dead letter goes back to the target that refused it, and only there', async () => {
    const journal = await open(await temporaryFolder());
    await journal.accept(makeEvent());
    const [event] = await journal.read(0, ALL);
    const about = {
      sink: 'hubs',
      destination: 'events',
      code: 'too_large',
      reason: 'r',
      attempts: 2,
      diedAt: 5,
    };
    await journal.addDeadLetter({ ...about, event: event! });
    expect(await journal.listDeadLetters({ sink: 'other' })).toEqual([]);
    expect(await journal.listDeadLetters({ sink: 'hubs' })).toEqual([{ key: 1, ...about, event }]);
    expect(await journal.retryDeadLetters({})).toBe(1);
    expect(await journal.listDeadLetters({})).toEqual([]);
    expect(await journal.read(1, ALL)).toMatchObject([
      { id: event!.id, seq: 2, handling: { only: ['hubs:events'] } },
    ]);
  });
});

describe('limits', () => {
  test('a full journal refuses, keeps what is unsettled, and makes room from what is settled', async () => {
    const journal = await open(await temporaryFolder(), { maxBytes: 1_000_000 });
    await journal.openCursor('slow');
    const body = Buffer.alloc(100_000, 0x20);
    let accepted = 0;
    const fill = async (): Promise<unknown> => {
      for (;;) {
        try {
          await journal.accept(makeEvent({ body }));
          accepted += 1;
        } catch (error) {
          return error;
        }
      }
    };
    expect(await fill()).toMatchObject({ code: 'journal_full' });
    expect(accepted).toBeGreaterThan(5);
    expect((await journal.status()).events).toBe(accepted);
    journal.moveCursor('slow', 3);
    await journal.flush();
    expect(await journal.accept(makeEvent({ body }))).toMatchObject({ status: 'accepted' });
    // A segment here has one event: the oldest is removed, on a slow machine all settled ones, and no other.
    expect([2, 3, 4]).toContain((await journal.status()).firstSeq);
  });

  test('settled events go when their retention is over, ids when the dedup window is', async () => {
    const path = await temporaryFolder();
    const clock = new ManualClock();
    const journal = await open(path, { clock });
    await journal.openCursor('archive');
    await journal.accept(makeEvent({ receivedAt: clock.now() }));
    clock.leap(DAY);
    // In a segment of its own: the first is as old as they may become before another is begun.
    await journal.accept(makeEvent({ receivedAt: clock.now() }));
    journal.moveCursor('archive', 1);
    await journal.flush();
    clock.leap(8 * DAY);
    // A call is answered after those before it: the status sees what maintenance left.
    expect(await journal.status()).toMatchObject({ events: 1, firstSeq: 2, lastSeq: 2 });
    // A command has no sinks, and so cannot say what is settled.
    await journal.close();
    const command = await open(path, { clock, create: false });
    clock.leap(DAY);
    expect(await command.status()).toMatchObject({ events: 1, firstSeq: 2, lastSeq: 2 });
  });
});

/** A journal of 50 events, each its own commit, whose process was killed; its only segment. */
async function killed(): Promise<{ path: string; segment: string }> {
  const path = await temporaryFolder();
  const holder = join(import.meta.dirname, 'hold-journal.ts');
  const child = execFile(process.execPath, [holder, path, '50']);
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
  const [segment = '', ...others] = segmentsOf(path);
  expect(others).toEqual([]);
  return { path, segment };
}

describe('one owner, and recovery', () => {
  test('fault 8: a second process exits with a clear error, and a killed owner leaves nothing stale', async () => {
    const path = await temporaryFolder();
    const holder = join(import.meta.dirname, 'hold-journal.ts');
    const first = execFile(process.execPath, [holder, path]);
    onTestFinished(() => void first.kill('SIGKILL'));
    await new Promise((resolve) => first.stdout?.once('data', resolve));
    const second = await promisify(execFile)(process.execPath, [holder, path]).catch(
      (error: unknown) => error,
    );
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining(`process ${first.pid}`) });
    const gone = new Promise((resolve) => first.once('exit', resolve));
    first.kill('SIGKILL');
    await gone;
    await expect(open(path)).resolves.toBeDefined();
  });

  test('fault 3: a journal torn at its end starts and keeps every committed event', async () => {
    const { path, segment } = await killed();
    const { size } = statSync(segment);
    appendFileSync(segment, Buffer.alloc(5000, 0x5a));
    appendFileSync(join(path, 'journal.db-wal'), Buffer.alloc(5000, 0x5a));
    const whole = await open(path);
    expect(await whole.read(0, ALL)).toHaveLength(50);
    expect(statSync(segment).size).toBe(size);
    await whole.close();
  });

  test('fault 3: a torn write inside the last commit costs that commit only', async () => {
    const { path, segment } = await killed();
    // In the identity of the last event: where the process lived for a while, a frame without one stands behind it.
    truncateSync(segment, readFileSync(segment).lastIndexOf('8:webhooks') + 4);
    const torn = await open(path);
    expect(await torn.read(0, ALL)).toHaveLength(49);
    expect(await torn.accept(makeEvent())).toEqual({ status: 'accepted', seq: 50 });
    expect((await torn.account(0, Date.now())).counts).toMatchObject([{ kind: 'accepted', n: 50 }]);
  });

  test('without its database a journal still has its events, and begins no seq again', async () => {
    const { path } = await killed();
    for (const name of ['journal.db', 'journal.db-wal']) rmSync(join(path, name));
    const journal = await open(path);
    expect(await journal.read(0, ALL)).toHaveLength(50);
    expect(await journal.accept(makeEvent())).toEqual({ status: 'accepted', seq: 51 });
  });

  test('looking at a journal that is not there is an error, not a new journal', async () => {
    const path = join(await temporaryFolder(), 'none');
    await expect(open(path, { create: false })).rejects.toBeInstanceOf(MillraceError);
    expect(existsSync(path)).toBe(false);
  });
});
