import type { JournalEvent } from '../core/event.ts';
import { pageOf } from '../core/page.ts';
import { MillraceError, messageOf } from '../core/errors.ts';

/**
 * The newest events, kept in memory within a byte bound: a sink that keeps up never makes the journal read back what
 * it has just written. Seqs are contiguous and ascending.
 */
export class Tail {
  readonly #maxBytes: number;
  #events: JournalEvent[] = [];
  /** Entries before this index are gone; the array is compacted now and then instead of shifted each time. */
  #start = 0;
  #bytes = 0;
  /** The furthest that was read up to; null before the first read. */
  #reached: number | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(event: JournalEvent): void {
    if (event.seq - (this.#reached ?? event.seq) > FAR_BEHIND) return this.clear();
    const last = this.#events.at(-1);
    if (last !== undefined && event.seq !== last.seq + 1) this.clear();
    this.#events.push(event);
    this.#bytes += event.body.length + OVERHEAD;
    while (this.#bytes > this.#maxBytes && this.#start < this.#events.length) this.#shift();
    this.#compact();
  }

  /** Forgets everything up to and including `seq`: what every sink has settled is not read again. */
  drop(seq: number): void {
    for (let first = this.#events[this.#start]; first !== undefined && first.seq <= seq;) {
      this.#shift();
      first = this.#events[this.#start];
    }
    this.#compact();
  }

  #shift(): void {
    const gone = this.#events[this.#start];
    if (gone !== undefined) this.#bytes -= gone.body.length + OVERHEAD;
    this.#start += 1;
  }

  #compact(): void {
    if (this.#start <= 256 || this.#start * 2 <= this.#events.length) return;
    this.#events = this.#events.slice(this.#start);
    this.#start = 0;
  }

  /** Events after `seq`, or null when memory does not hold the next one. */
  read(after: number, limits: { count: number; bytes: number }): JournalEvent[] | null {
    this.#reached = Math.max(after, this.#reached ?? 0);
    const first = this.#events[this.#start];
    const last = this.#events.at(-1);
    if (first === undefined || last === undefined || after + 1 < first.seq || after >= last.seq) return null;
    return pageOf(this.#events, this.#start + (after + 1 - first.seq), limits);
  }

  clear(): void {
    this.#events = [];
    this.#start = 0;
    this.#bytes = 0;
  }
}

/** Events behind which no sink keeps up: what would be kept for it is old by the time that it comes there. */
const FAR_BEHIND = 10_000;
/** Rough bytes of an event besides its body. */
const OVERHEAD = 512;

type Listener = (lastSeq: number) => void;

/** The newest event of a journal, and who is told when there is one more. */
export class Newest {
  readonly #listeners = new Set<Listener>();
  readonly #onFailure: (error: MillraceError) => void;
  #seq: number;

  constructor(seq: number, onFailure: (error: MillraceError) => void) {
    this.#seq = seq;
    this.#onFailure = onFailure;
  }

  get seq(): number {
    return this.#seq;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Never throws: a listener that does is a failure, for what it delivers might stand still and nobody would know. */
  readonly reach = (seq: number): void => {
    if (seq <= this.#seq) return;
    this.#seq = seq;
    let failed: MillraceError | null = null;
    for (const listener of this.#listeners)
      try {
        listener(seq);
      } catch (cause) {
        const detail = `nobody could be told of what came in: ${messageOf(cause)}`;
        failed ??= new MillraceError('journal_failed', detail, { cause });
      }
    if (failed !== null) this.#onFailure(failed);
  };
}
