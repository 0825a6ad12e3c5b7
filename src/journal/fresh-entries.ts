import { ENTRY_BYTES } from '../core/receipt.ts';

/** Kept at most: 2 MiB, some seconds of what can come in. */
const MOST = 65_536;

/**
 * Entries of the log of receipts, as they were made with the commits: nothing is read and hashed again for the log. What is not
 * here (after a start, or when the log is far behind) is read from the segments.
 */
export class FreshEntries {
  #entries = Buffer.alloc(0);
  #firstSeq = 1;
  #count = 0;
  #isOn = false;

  /** Whether anybody asks for entries. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** @param seq up to which the log has all entries; null when there is none */
  hold(seq: number | null): void {
    this.#isOn = seq !== null;
    if (seq === null) this.#clear();
    else this.#drop(seq + 1 - this.#firstSeq);
  }

  /**
   * Entries of a commit. What lies between them and those before has none here.
   * @param entries a character for each byte; null for what has none
   */
  add(firstSeq: number, entries: readonly (string | null)[]): void {
    if (firstSeq !== this.#firstSeq + this.#count || this.#count + entries.length > MOST) this.#clear();
    if (entries.length > MOST) return;
    if (this.#count === 0) this.#firstSeq = firstSeq;
    if (this.#entries.length === 0) this.#entries = Buffer.allocUnsafeSlow(MOST * ENTRY_BYTES);
    for (const entry of entries) {
      const at = this.#count * ENTRY_BYTES;
      if (entry === null) this.#entries.fill(0, at, at + ENTRY_BYTES);
      else this.#entries.write(entry, at, ENTRY_BYTES, 'latin1');
      this.#count += 1;
    }
  }

  /** A copy of the entries after a seq; null when the first of them is not here. */
  after(seq: number, most: number): Uint8Array | null {
    const from = seq + 1 - this.#firstSeq;
    const count = Math.min(most, this.#count - from);
    if (from < 0 || count <= 0) return null;
    const entries = Buffer.allocUnsafeSlow(count * ENTRY_BYTES);
    this.#entries.copy(entries, 0, from * ENTRY_BYTES, (from + count) * ENTRY_BYTES);
    return entries;
  }

  #drop(count: number): void {
    if (count <= 0) return;
    if (count >= this.#count) return this.#clear();
    this.#entries.copyWithin(0, count * ENTRY_BYTES, this.#count * ENTRY_BYTES);
    this.#firstSeq += count;
    this.#count -= count;
  }

  #clear(): void {
    this.#count = 0;
  }
}
