import type Database from 'better-sqlite3';
import type { JournalAccount } from '../core/journal.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { DroppedLetters } from './dropped-letters.ts';
import type { Events } from './events.ts';

const STARTED = 'sink-started/';
const HOUR = 3_600_000;

interface LedgerParts {
  readonly db: Database.Database;
  readonly checkpoints: Checkpoints;
  readonly events: Pick<Events, 'counts' | 'tally'>;
  readonly dropped: DroppedLetters;
}

/** Reads what a reconciliation needs beside the events: counts, and where sinks began. */
export class LedgerReader {
  readonly #parts: LedgerParts;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /** Remembers where a sink that is new begins: it never gets what came before. */
  sinkStarted(sink: string, seq: number): void {
    const { checkpoints } = this.#parts;
    if (checkpoints.load(STARTED + sink) === null) checkpoints.save(STARTED + sink, String(seq));
  }

  sinkForgotten(sink: string): void {
    this.#parts.checkpoints.remove(STARTED + sink);
  }

  sinkRenamed(from: string, to: string): void {
    this.#parts.db.prepare('UPDATE checkpoints SET key = ? WHERE key = ?').run(STARTED + to, STARTED + from);
    this.#parts.dropped.sinkRenamed(from, to);
  }

  /** All but the positions, which the store knows. */
  account(since: number, until: number): Omit<JournalAccount, 'lastSeq' | 'firstSeq' | 'cursors' | 'routes'> {
    const { db, dropped } = this.#parts;
    const { counts, tally } = this.#parts.events;
    const started = db
      .prepare(
        `SELECT substr(key, ${STARTED.length + 1}), CAST(value AS INTEGER) FROM checkpoints WHERE key GLOB ?`,
      )
      .raw()
      .all(`${STARTED}*`) as [string, number][];
    const first = db.prepare('SELECT min(hour) FROM hour_counts').pluck().get() as number | null;
    const hours = [...(first === null ? [] : [first]), ...tally.counted.map(([, hour]) => hour)];
    return {
      counts: counts.read(since, until, tally),
      countedSince: hours.length === 0 ? null : Math.min(...hours) * HOUR,
      started,
      ...dropped.read(since, until),
    };
  }
}
