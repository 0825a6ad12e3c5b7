import { join } from 'node:path';
import { systemClock } from '../../../src/core/clock.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import type { EventLog } from '../../../src/core/journal.ts';
import type { Sink } from '../../../src/core/sink.ts';
import { Dispatcher } from '../../../src/deliver/dispatcher.ts';
import type { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { openJournal } from '../ingest/fill.ts';

export const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** A journal filled once, and played to sinks as often as wanted. */
export class FilledJournal {
  readonly #journal: SqliteJournal;
  readonly count: number;
  #runs = 0;

  private constructor(journal: SqliteJournal, count: number) {
    this.#journal = journal;
    this.count = count;
  }

  /** @param runs how often it is played at most: a sink gets only events that came after its cursor was placed */
  static async fill(folder: string, events: readonly JournalEvent[], runs: number): Promise<FilledJournal> {
    const journal = await openJournal(join(folder, 'journal'));
    for (let run = 1; run <= runs; run += 1) await journal.openCursor(`run-${run}`);
    await Promise.all(events.map((event) => journal.accept(event)));
    return new FilledJournal(journal, events.length);
  }

  /** Delivers everything to one open sink through the dispatcher. @returns what closes both */
  playTo(sink: Sink): Promise<() => Promise<void>> {
    return play(this.#journal, `run-${(this.#runs += 1)}`, this.count, sink);
  }

  close(): Promise<void> {
    return this.#journal.close();
  }
}

/** Events in memory, read as a journal is: what is measured is the dispatcher and the sink, and no reading. */
export class MemoryJournal {
  readonly #events: readonly JournalEvent[];

  constructor(events: readonly JournalEvent[]) {
    this.#events = events.map((event, index) => ({ ...event, seq: index + 1 }));
  }

  get count(): number {
    return this.#events.length;
  }

  playTo(sink: Sink): Promise<() => Promise<void>> {
    const events = this.#events;
    const journal: EventLog = {
      lastSeq: events.length,
      read: (after, { count }) => Promise.resolve(events.slice(after, after + count)),
      subscribe: () => () => undefined,
      openCursor: () => Promise.resolve(0),
      releaseCursor: () => undefined,
      moveCursor: () => undefined,
      flush: () => Promise.resolve(),
      addDeadLetter: ({ reason }) => Promise.reject(new Error(reason)),
    };
    return play(journal, 'run', events.length, sink);
  }
}

async function play(
  journal: EventLog,
  name: string,
  count: number,
  sink: Sink,
): Promise<() => Promise<void>> {
  const all = Promise.withResolvers<void>();
  let delivered = 0;
  const dispatcher = new Dispatcher({
    logOf: () => journal,
    clock: systemClock,
    log: quiet,
    retry: { initial: 500, max: 30_000, giveUpAfter: 0 },
    maxPending: 5000,
    maxPendingBytes: 32 * 1024 * 1024,
    targetsOf: () => [{ sink: name, destination: null }],
    observer: {
      sent: () => undefined,
      retried: () => undefined,
      died: () => undefined,
      delivered: (_, deliveries) => {
        delivered += deliveries.length;
        if (delivered === count) all.resolve();
      },
    },
  });
  await dispatcher.add(name, sink);
  dispatcher.begin();
  await all.promise;
  return () => dispatcher.stop(AbortSignal.timeout(10_000));
}
