import type { JournalEvent } from '../../core/event.ts';
import type { Claim } from './lease.ts';
import { nothingAt, type SharedEvent } from './record.ts';
import type { Destination, Settled } from './settled-offsets.ts';

/** An event on its way to one sink, or the place of one that is none for it. */
interface Entry {
  readonly offset: number;
  readonly claim: Claim;
  /** Of its partition. */
  readonly settled: Settled;
  /** Null once it was handed out. */
  event: JournalEvent | null;
  readonly bytes: number;
  /** It was not sent, for others may have its partition. */
  withheld: boolean;
}

/** What a sink has in memory of its partitions, in the order in which it came, under numbers of this process. */
export class Entries {
  #all: Entry[] = [];
  #firstSeq = 1;
  #bytes = 0;

  get lastSeq(): number {
    return this.#firstSeq + this.#all.length - 1;
  }

  /** Not yet settled, or not yet handed out. */
  get count(): number {
    return this.#all.length;
  }

  /** Of bodies that are not handed out yet. */
  get bytes(): number {
    return this.#bytes;
  }

  add({
    event,
    ...place
  }: Pick<Entry, 'claim' | 'settled' | 'offset'> & { event: Omit<SharedEvent, 'seq'> | null }): void {
    const seq = this.lastSeq + 1;
    const bytes = event?.body.length ?? 0;
    this.#bytes += bytes;
    const placed = event === null ? nothingAt(seq) : { ...event, seq };
    this.#all.push({ ...place, event: placed, bytes, withheld: false });
  }

  /**
   * The next page. What is not this process's any more has nothing in it; nor has what was handed out before: its claim ends,
   * and whoever has the partition then reads it again.
   */
  read(after: number, { count, bytes }: { count: number; bytes: number }): JournalEvent[] {
    const page: JournalEvent[] = [];
    let size = 0;
    for (let seq = Math.max(after + 1, this.#firstSeq); page.length < count; seq += 1) {
      const entry = this.#all[seq - this.#firstSeq];
      if (entry === undefined || (page.length > 0 && size + entry.bytes > bytes)) break;
      if (entry.event === null && entry.settled.isOpen(entry.offset)) entry.claim.end();
      page.push(entry.event !== null && entry.claim.isHeld ? entry.event : nothingAt(seq));
      size += entry.bytes;
      if (entry.event === null) continue;
      entry.event = null;
      this.#bytes -= entry.bytes;
    }
    return page;
  }

  /** Whether an event may still be sent; from then on nobody here sends one that may not. */
  maySend(seq: number): boolean {
    const entry = this.#all[seq - this.#firstSeq];
    if (entry === undefined) return false;
    if (!entry.claim.isHeld) entry.withheld = true;
    return !entry.withheld;
  }

  /** Whether what became of an event may still be noted: not when others may have its partition. */
  mayNote(seq: number): boolean {
    return this.#all[seq - this.#firstSeq]?.claim.isOwn !== false;
  }

  /** One delivery of the event is confirmed, or is a dead letter. */
  settle(seq: number, destination: Destination): void {
    const entry = this.#all[seq - this.#firstSeq];
    entry?.settled.settle(entry.offset, destination);
  }

  /** Forgets what is settled up to a seq; but not before what was done of a claim that has ended has been committed. */
  forget(upTo: number): void {
    let count = 0;
    for (const entry of this.#all) {
      if (this.#firstSeq + count > upTo) break;
      if (!entry.claim.isClosed && (!entry.claim.isHeld || entry.withheld)) break;
      // The sink is past it without a word of it: the user's data was erased.
      entry.settled.settleAll(entry.offset);
      if (entry.event !== null) this.#bytes -= entry.bytes;
      count += 1;
    }
    if (count === 0) return;
    this.#all = this.#all.slice(count);
    this.#firstSeq += count;
  }
}
