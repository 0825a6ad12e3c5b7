import { MillraceError } from '../core/errors.ts';
import { ENTRY_BYTES, NO_EVENT } from '../core/receipt.ts';
import { Frontier } from './frontier.ts';
import { leafHash } from './hashing.ts';
import type { LogSource } from './log-source.ts';
import { openCheckpoint, type NoteVerifier, type TreeHead } from './note.ts';
import { hashesIn } from './tiles.ts';

/** Entries read at a time: 256 tiles. */
const CHUNK = 65_536;
/** Bytes of an entry that are kept in memory: more than chance, or a try, can hit. */
const KEPT = 16;

/**
 * All entries of a log, held against its signed checkpoint, and which of them something was found for.
 */
export class LogEntries {
  readonly head: TreeHead;
  /** Roots of the log when it had so many entries, for the sizes that were asked for. */
  readonly roots = new Map<number, Buffer>();
  readonly #kept: Buffer;
  /** Open addressing: index + 1 of the entry, by its first bytes. */
  readonly #slots: Uint32Array;
  readonly #accounted: Uint8Array;

  /**
   * @param sizes of which the roots are wanted
   * @throws MillraceError receipts_unusable when it is not the log that its checkpoint was signed for
   */
  static async read(
    log: LogSource,
    verifier: NoteVerifier,
    sizes: ReadonlySet<number> = new Set(),
  ): Promise<LogEntries> {
    const note = await log.checkpoint();
    const unusable = (detail: string): MillraceError =>
      new MillraceError('receipts_unusable', `${log.name}: ${detail}`);
    if (note === null) throw unusable('has no checkpoint');
    const head = openCheckpoint(note, verifier);
    if (head === null) throw unusable(`its checkpoint is not signed by ${verifier.name}`);
    const all = new LogEntries(head);
    const tree = new Frontier();
    for (let at = 0; at < head.size; at += CHUNK) {
      const count = Math.min(CHUNK, head.size - at);
      const entries = await log.entries(at, count);
      if (entries.length !== count * ENTRY_BYTES) throw unusable(`has fewer than ${head.size} entries`);
      for (const [index, entry] of hashesIn(entries).entries()) {
        tree.push(leafHash(entry));
        all.#add(at + index, entry);
        if (sizes.has(at + index + 1)) all.roots.set(at + index + 1, tree.root());
      }
    }
    if (!tree.root().equals(head.root)) throw unusable('is not the log that its checkpoint was signed for');
    return all;
  }

  private constructor(head: TreeHead) {
    this.head = head;
    this.#kept = Buffer.alloc(head.size * KEPT);
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(16, head.size * 2))));
    this.#accounted = new Uint8Array(head.size);
  }

  /** Something was found for this entry. @returns whether it is in the log, and nothing was found for it before */
  account(entry: Buffer): boolean {
    const found = this.#find(entry).filter((index) => this.#accounted[index] === 0);
    for (const index of found) this.#accounted[index] = 1;
    return found.length > 0;
  }

  /** Whether this is the entry at this place. */
  isAt(index: number, entry: Buffer): boolean {
    return index < this.head.size && this.#isKept(index, entry);
  }

  /** Places of the entries that stand for an event for which nothing was found. */
  *missing(): Generator<number> {
    for (let index = 0; index < this.head.size; index += 1)
      if (this.#accounted[index] === 0 && !this.#isKept(index, NO_EVENT)) yield index;
  }

  /** Entries that stand for an event. */
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

  /** What was put back from dead letters can have two. */
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
