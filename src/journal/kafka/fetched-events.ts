import type { JournalEvent } from '../../core/event.ts';
import type { Lease } from './lease.ts';
import { nothingAt, type FetchedEvent } from './record.ts';
import type { Destination, SettledOffsets } from './settled-offsets.ts';

interface Entry {
  readonly offset: number;
  readonly lease: Lease;
  /** Of its partition. */
  readonly settled: SettledOffsets;
  /** Null once it was read. */
  event: JournalEvent | null;
  readonly bytes: number;
  /** It was not sent, because others may have its partition. */
  withheld: boolean;
}

/**
 * The records of its partitions that a sink has in memory, in the order in which they were fetched, numbered for this
 * process. A record that is not for the sink has a seq too, without an event.
 */
export class FetchedEvents {
  #all: Entry[] = [];
  #firstSeq = 1;
  #bytes = 0;

  get lastSeq(): number {
    return this.#firstSeq + this.#all.length - 1;
  }

  get count(): number {
    return this.#all.length;
  }

  /** Body bytes of events that were not read yet. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param event null for a record that is not for the sink */
  add(
    { lease, settled, offset }: Pick<Entry, 'lease' | 'settled' | 'offset'>,
    event: Omit<FetchedEvent, 'seq'> | null,
  ): void {
    const seq = this.lastSeq + 1;
    const bytes = event?.body.length ?? 0;
    this.#bytes += bytes;
    const numbered = event === null ? nothingAt(seq) : { ...event, seq };
    this.#all.push({ lease, settled, offset, event: numbered, bytes, withheld: false });
  }

  /**
   * The next page. An entry without a lease has nothing in it. Nor has one that was read before: it ends its lease, and the
   * next owner of the partition fetches it again.
   */
  read(after: number, { count, bytes }: { count: number; bytes: number }): JournalEvent[] {
    const page: JournalEvent[] = [];
    let size = 0;
    for (let seq = Math.max(after + 1, this.#firstSeq); page.length < count; seq += 1) {
      const entry = this.#at(seq);
      if (entry === undefined || (page.length > 0 && size + entry.bytes > bytes)) break;
      if (entry.event === null && entry.settled.isOpen(entry.offset)) entry.lease.end();
      page.push(entry.event !== null && entry.lease.isHeld ? entry.event : nothingAt(seq));
      size += entry.bytes;
      this.#drop(entry);
    }
    return page;
  }

  /** Whether an event may still be sent. Once the answer was no, it stays no. */
  maySend(seq: number): boolean {
    const entry = this.#at(seq);
    if (entry === undefined) return false;
    if (!entry.lease.isHeld) entry.withheld = true;
    return !entry.withheld;
  }

  /** Whether a dead letter of the event may be written: not when others may have its partition. */
  isOwn(seq: number): boolean {
    return this.#at(seq)?.lease.isOwn !== false;
  }

  /** One delivery of the event is confirmed, or is a dead letter. */
  settle(seq: number, destination: Destination): void {
    const entry = this.#at(seq);
    entry?.settled.settle(entry.offset, destination);
  }

  /** Drops what is settled up to a seq; of a lease that has ended only after its last commit. */
  forget(upTo: number): void {
    let count = 0;
    for (const entry of this.#all) {
      if (this.#firstSeq + count > upTo) break;
      if (!entry.lease.isClosed && (!entry.lease.isHeld || entry.withheld)) break;
      // Also where nothing was sent, because the user was erased.
      entry.settled.settleAll(entry.offset);
      this.#drop(entry);
      count += 1;
    }
    if (count === 0) return;
    this.#all = this.#all.slice(count);
    this.#firstSeq += count;
  }

  #at(seq: number): Entry | undefined {
    return this.#all[seq - this.#firstSeq];
  }

  #drop(entry: Entry): void {
    if (entry.event !== null) this.#bytes -= entry.bytes;
    entry.event = null;
  }
}
