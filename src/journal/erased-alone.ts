import type { JournalAccount } from '../core/journal.ts';
import { parseTarget } from '../core/route.ts';
import type { Handling } from '../core/event.ts';
import type { Cursors } from './cursors.ts';
import type { Base } from './events.ts';
import { rowOf } from './segments/pages.ts';

/** An event that was for a sink and was not sent there, as its user was erased. */
export type PassedOver = readonly [sink: string, seq: number, receivedAt: number];

const INSERT = 'INSERT OR IGNORE INTO erased_alone (sink, seq, received_at)';

interface AloneParts extends Pick<Base, 'db' | 'events'> {
  readonly cursors: Pick<Cursors, 'known'>;
}

/**
 * What erasures have taken from the journal alone, by sink: it never came to the sink's files, so that nothing says there that it was
 * erased. Once its record is cleared away, it would count as lost.
 */
export class ErasedAlone {
  readonly #parts: AloneParts;

  constructor(parts: AloneParts) {
    this.#parts = parts;
  }

  /** Inside a transaction. */
  passedOver(events: readonly PassedOver[]): void {
    const insert = this.#parts.db.prepare(`${INSERT} VALUES (?, ?, ?)`);
    for (const event of events) insert.run(...event);
  }

  /** Dead letters that are about to go. Inside a transaction. */
  letters(keys: readonly number[]): void {
    this.#parts.db
      .prepare(
        `${INSERT} SELECT sink, seq, received_at FROM dead_letters WHERE key IN (SELECT value FROM json_each(?))`,
      )
      .run(JSON.stringify(keys));
  }

  /** Events that are about to go, for the sinks that they wait for. Inside a transaction. */
  waiting(seqs: readonly number[]): void {
    const insert = this.#parts.db.prepare(`${INSERT} VALUES (?, ?, ?)`);
    const behind = this.#parts.cursors.known();
    for (const seq of seqs) {
      const sinks = behind.flatMap(([sink, at]) => (at < seq ? [sink] : []));
      const found = sinks.length === 0 ? null : rowOf(this.#parts.events.log, seq);
      if (found === null) continue;
      const [, , , , , , receivedAt, , handling] = found.row;
      const { only, replayId } = (handling === null ? {} : JSON.parse(handling)) as Handling;
      const own = only?.map((target) => parseTarget(target).sink);
      if (replayId !== undefined) continue;
      for (const sink of sinks) if (own?.includes(sink) ?? true) insert.run(sink, seq, receivedAt);
    }
  }

  /** Of a span of time, what has no record any more. @param firstSeq of the oldest record */
  read(since: number, until: number, firstSeq: number): NonNullable<JournalAccount['erasedAlone']> {
    return this.#parts.db
      .prepare('SELECT sink FROM erased_alone WHERE received_at >= ? AND received_at < ? AND seq < ?')
      .pluck()
      .all(since, until, firstSeq) as string[];
  }
}
