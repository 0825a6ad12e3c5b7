import type { LedgerEntry } from '../../core/proof.ts';

/** What shows that a key store was changed without the master key, or that an older copy was restored. */
export interface KeyProblem {
  readonly code: 'keys_stale' | 'slot_returned' | 'tombstone_forged' | 'ledger_forged';
  readonly detail: string;
}

/** The destroyed keys of one file, each with its epoch; 0 while its tombstone is not written. */
export class Tombstones {
  readonly #epochs = new Map<string, number>();
  /** Epoch of the newest. */
  last = 0;
  #written = 0;
  #forged = 0;
  readonly #returned = new Set<string>();

  get size(): number {
    return this.#epochs.size;
  }

  has(id: string): boolean {
    return this.#epochs.has(id);
  }

  /** The key is destroyed in memory, and not yet on disk. */
  forget(id: string): void {
    this.#epochs.set(id, 0);
  }

  written(id: string, epoch: number): void {
    // A second tombstone of the same key is a copy.
    if ((this.#epochs.get(id) ?? 0) > 0) this.#forged += 1;
    else this.#written += 1;
    this.#epochs.set(id, epoch);
    this.last = Math.max(this.last, epoch);
  }

  /** The file has a tombstone that was made without the master key. */
  forged(): void {
    this.#forged += 1;
  }

  /** The file has a key that was destroyed. */
  returned(id: string): void {
    this.#returned.add(id);
  }

  /** In the order of their epochs. */
  entries(): (readonly [id: string, epoch: number])[] {
    return [...this.#epochs].toSorted(([, one], [, other]) => one - other);
  }

  /**
   * What is wrong with the file, by itself and by the ledger.
   * @param damaged slots that cannot be read: as many tombstones may be missing by accident
   */
  problems(
    ledger: { readonly path: string; readonly entries: readonly LedgerEntry[] } | null,
    damaged: number,
    isActive: (id: string) => boolean,
  ): KeyProblem[] {
    const problems: KeyProblem[] = [];
    const add = (code: KeyProblem['code'], detail: string): number => problems.push({ code, detail });
    if (this.#forged > 0)
      add('tombstone_forged', `${this.#forged} keys were marked as destroyed without the master key`);
    const destroyed = ledger?.entries.flatMap(({ key }) => key ?? []) ?? [];
    const returned = new Set([...this.#returned, ...destroyed.filter(isActive)]);
    const lacking = destroyed.filter((id) => !this.has(id) && !returned.has(id)).length;
    const missing = Math.max(this.last - this.#written, lacking);
    const known = Math.max(0, ...(ledger?.entries ?? []).map(({ epoch }) => epoch));
    if (ledger !== null && this.last < known && returned.size + lacking > damaged) {
      const back = returned.size === 0 ? '' : `; ${returned.size} destroyed keys came back`;
      add(
        'keys_stale',
        `it stands at erasure ${this.last}, ${ledger.path} at ${known}${back}: an older copy was restored`,
      );
    } else if (returned.size > 0)
      add('slot_returned', `${returned.size} destroyed keys came back: ${[...returned].join(', ')}`);
    else if (missing > damaged) add('slot_returned', `${missing} marks of destroyed keys are missing`);
    return problems;
  }
}
