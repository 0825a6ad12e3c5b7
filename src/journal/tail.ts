import type { JournalEvent } from '../core/event.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { pageOf } from '../core/page.ts';

/** Events: a sink further behind than this does not catch up before what would be kept for it is dropped. */
const FAR_BEHIND = 10_000;
/** Rough bytes of an event besides its body. */
const OVERHEAD = 512;

/**
 * The newest events in memory, up to a number of bytes: what has just been written is not read back for a sink that keeps up. Seqs
 * ascend without gaps.
 */
export class Tail {
  readonly #maxBytes: number;
  #events: JournalEvent[] = [];
  /** Events before this index are dropped; the array is compacted now and then, because shifting it each time is slow. */
  #start = 0;
  #bytes = 0;
  /** Highest seq after which events were read; null before the first read. */
  #readAfter: number | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(event: JournalEvent): void {
    if (event.seq - (this.#readAfter ?? event.seq) > FAR_BEHIND) return this.clear();
    const last = this.#events.at(-1);
    if (last !== undefined && event.seq !== last.seq + 1) this.clear();
    this.#events.push(event);
    this.#bytes += event.body.length + OVERHEAD;
    while (this.#bytes > this.#maxBytes && this.#start < this.#events.length) this.#shift();
    this.#compact();
  }

  /** Drops everything up to `seq`. */
  drop(seq: number): void {
    for (let first = this.#events[this.#start]; first !== undefined && first.seq <= seq;) {
      this.#shift();
      first = this.#events[this.#start];
    }
    this.#compact();
  }

  #shift(): void {
    const first = this.#events[this.#start];
    if (first !== undefined) this.#bytes -= first.body.length + OVERHEAD;
    this.#start += 1;
  }

  #compact(): void {
    if (this.#start <= 256 || this.#start * 2 <= this.#events.length) return;
    this.#events = this.#events.slice(this.#start);
    this.#start = 0;
  }

  /** Events after `seq`; null when the next one is not in memory. */
  read(after: number, limits: { count: number; bytes: number }): JournalEvent[] | null {
    this.#readAfter = Math.max(after, this.#readAfter ?? 0);
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

type Listener = (lastSeq: number) => void;

/** Last sequence number of a journal; notifies subscribers when it grows. */
export class LastSeq {
  readonly #listeners = new Set<Listener>();
  readonly #onFailure: (error: MillraceError) => void;
  #seq: number;

  /** @param onFailure called when a subscriber throws: what it delivers might stand still */
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

  /** Never throws. */
  advance(seq: number): void {
    if (seq <= this.#seq) return;
    this.#seq = seq;
    let failed: MillraceError | null = null;
    for (const listener of this.#listeners)
      try {
        listener(seq);
      } catch (cause) {
        const detail = `a sink could not be notified of new events: ${messageOf(cause)}`;
        failed ??= new MillraceError('journal_failed', detail, { cause });
      }
    if (failed !== null) this.#onFailure(failed);
  }
}
