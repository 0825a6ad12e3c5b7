import type { JournalAccount } from '../core/journal.ts';
import { parseTarget } from '../core/route.ts';
import type { Handling } from '../core/event.ts';
import type { Cursors } from './cursors.ts';
import type { StoreBase } from './events.ts';
import { rowOf } from './segments/pages.ts';

/** An event that was not sent to a sink because its user was erased. */
export type PassedOver = readonly [sink: string, seq: number, receivedAt: number];

const INSERT = 'INSERT OR IGNORE INTO erased_alone (sink, seq, received_at)';

interface AloneParts extends Pick<StoreBase, 'db' | 'events'> {
  readonly cursors: Pick<Cursors, 'known'>;
}

/**
 * Events erased before they came to a sink, by sink. The sink's files do not say that they were erased, so that each would count as
 * lost once its record is gone.
 */
export class ErasedAlone {
  readonly #parts: AloneParts;
  readonly #insert;

  constructor(parts: AloneParts) {
    this.#parts = parts;
    this.#insert = parts.db.prepare(`${INSERT} VALUES (?, ?, ?)`);
  }

  /** Inside a transaction. */
  add(events: readonly PassedOver[]): void {
    for (const event of events) this.#insert.run(...event);
  }

  /** Adds dead letters that are about to be erased. Inside a transaction. */
  addDeadLetters(keys: readonly number[]): void {
    this.#parts.db
      .prepare(
        `${INSERT} SELECT sink, seq, received_at FROM dead_letters WHERE key IN (SELECT value FROM json_each(?))`,
      )
      .run(JSON.stringify(keys));
  }

  /** Adds events that are about to be erased, for the sinks that they wait for. Inside a transaction. */
  addWaiting(seqs: readonly number[]): void {
    const cursors = this.#parts.cursors.known();
    for (const seq of seqs) {
      const sinks = cursors.flatMap(([sink, at]) => (at < seq ? [sink] : []));
      const found = sinks.length === 0 ? null : rowOf(this.#parts.events.log, seq);
      if (found === null) continue;
      const [, , , , , , receivedAt, , handling] = found.row;
      const { only, replayId } = (handling === null ? {} : JSON.parse(handling)) as Handling;
      if (replayId !== undefined) continue;
      const targets = only?.map((target) => parseTarget(target).sink);
      for (const sink of sinks) if (targets?.includes(sink) ?? true) this.#insert.run(sink, seq, receivedAt);
    }
  }

  /** Sinks of the events received in a span of time whose records are gone. @param firstSeq of the oldest record */
  read(since: number, until: number, firstSeq: number): NonNullable<JournalAccount['erasedAlone']> {
    return this.#parts.db
      .prepare('SELECT sink FROM erased_alone WHERE received_at >= ? AND received_at < ? AND seq < ?')
      .pluck()
      .all(since, until, firstSeq) as string[];
  }
}
