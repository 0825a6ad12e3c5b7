import { NO_EVENT } from '../../core/receipt.ts';
import type { LogSource } from './log-source.ts';
import type { NoteVerifier, TreeHead } from './note.ts';
import { scanLog } from './scan.ts';

/** Bytes of an entry that are kept in memory: enough that no two are alike. */
const KEPT = 16;

/** All entries of a log that matches its signed checkpoint, and which of them are accounted for. */
export class LogEntries {
  readonly head: TreeHead;
  /** Roots by number of entries, for the sizes that were asked for. */
  readonly roots = new Map<number, Buffer>();
  readonly #kept: Buffer;
  /** Open addressing: index + 1 of the entry, by its first bytes. */
  readonly #slots: Uint32Array;
  readonly #accounted: Uint8Array;

  /**
   * @param sizes numbers of entries whose roots are wanted
   * @throws MillraceError receipts_unusable
   */
  static async read(
    log: LogSource,
    verifier: NoteVerifier,
    sizes: ReadonlySet<number> = new Set(),
  ): Promise<LogEntries> {
    let all: LogEntries | null = null;
    const head = await scanLog(log, verifier, (found) => {
      const entries = (all = new LogEntries(found));
      return (index, entry, tree) => {
        entries.#add(index, entry);
        if (sizes.has(index + 1)) entries.roots.set(index + 1, tree.root());
      };
    });
    return all ?? new LogEntries(head);
  }

  private constructor(head: TreeHead) {
    this.head = head;
    this.#kept = Buffer.alloc(head.size * KEPT);
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(16, head.size * 2))));
    this.#accounted = new Uint8Array(head.size);
  }

  /** Marks an entry as accounted for. @returns true when the log has it, and it was not marked before */
  account(entry: Buffer): boolean {
    const found = this.openOf(entry);
    for (const index of found) this.#accounted[index] = 1;
    return found.length > 0;
  }

  /** Indexes of an entry that are not accounted for. */
  openOf(entry: Buffer): number[] {
    return this.#find(entry).filter((index) => this.#accounted[index] === 0);
  }

  /** First index of an entry; null when the log does not have it. */
  placeOf(entry: Buffer): number | null {
    return this.#find(entry)[0] ?? null;
  }

  isAt(index: number, entry: Buffer): boolean {
    return index < this.head.size && this.#isKept(index, entry);
  }

  /** Indexes of the entries of events that are not accounted for. */
  *missing(): Generator<number> {
    for (let index = 0; index < this.head.size; index += 1)
      if (this.#accounted[index] === 0 && !this.#isKept(index, NO_EVENT)) yield index;
  }

  /** Number of entries that are of an event. */
  get events(): number {
    let events = 0;
    for (let index = 0; index < this.head.size; index += 1) if (!this.#isKept(index, NO_EVENT)) events += 1;
    return events;
  }

  #add(index: number, entry: Buffer): void {
    entry.copy(this.#kept, index * KEPT, 0, KEPT);
    if (entry.equals(NO_EVENT)) return;
    let slot = this.#slotOf(entry);
    while (this.#slots[slot] !== 0) slot = (slot + 1) & (this.#slots.length - 1);
    this.#slots[slot] = index + 1;
  }

  /** An event that was retried from dead letters can have two entries. */
  #find(entry: Buffer): number[] {
    const found: number[] = [];
    for (
      let slot = this.#slotOf(entry);
      this.#slots[slot] !== 0;
      slot = (slot + 1) & (this.#slots.length - 1)
    ) {
      const index = (this.#slots[slot] ?? 0) - 1;
      if (this.#isKept(index, entry)) found.push(index);
    }
    return found;
  }

  #slotOf(entry: Buffer): number {
    return entry.readUInt32LE(0) & (this.#slots.length - 1);
  }

  #isKept(index: number, entry: Buffer): boolean {
    return this.#kept.compare(entry, 0, KEPT, index * KEPT, (index + 1) * KEPT) === 0;
  }
}
