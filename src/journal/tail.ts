import type { JournalEvent } from '../core/event.ts';
import { pageOf } from '../core/page.ts';

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

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(event: JournalEvent): void {
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

/** Rough bytes of an event besides its body. */
const OVERHEAD = 512;
