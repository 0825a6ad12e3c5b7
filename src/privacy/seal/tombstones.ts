import type { LedgerEntry } from '../../core/proof.ts';

/** What tells that somebody without the master key was at a key store, or that an older one was restored. */
export interface KeyProblem {
  readonly code: 'keys_stale' | 'slot_returned' | 'tombstone_forged' | 'ledger_forged';
  readonly detail: string;
}

/** The keys of one file that are destroyed, each with its epoch; 0 while its tombstone is not written. */
export class Tombstones {
  readonly #epochs = new Map<string, number>();
  #last = 0;
  #written = 0;
  #copied = 0;
  #forged = 0;
  readonly #returned = new Set<string>();

  get size(): number {
    return this.#epochs.size;
  }

  /** Epoch of the newest. */
  get last(): number {
    return this.#last;
  }

  has(id: string): boolean {
    return this.#epochs.has(id);
  }

  /** Destroyed in memory, and not yet on disk. */
  forget(id: string): void {
    this.#epochs.set(id, 0);
  }

  written(id: string, epoch: number): void {
    if ((this.#epochs.get(id) ?? 0) > 0) this.#copied += 1;
    else this.#written += 1;
    this.#epochs.set(id, epoch);
    this.#last = Math.max(this.#last, epoch);
  }

  /** A tombstone that nobody with the master key made. */
  forged(): void {
    this.#forged += 1;
  }

  /** A key stands in the file although it is destroyed. */
  returned(id: string): void {
    this.#returned.add(id);
  }

  /** In the order of their epochs. */
  *entries(): Generator<readonly [id: string, epoch: number]> {
    yield* [...this.#epochs].toSorted(([, one], [, other]) => one - other);
  }

  /**
   * What is wrong by what the file says of itself, and by the ledger.
   * @param damaged slots that cannot be read: as many tombstones may be missing without anybody's ill will
   */
  problems(
    ledger: { readonly path: string; readonly entries: readonly LedgerEntry[] } | null,
    damaged: number,
    isActive: (id: string) => boolean,
  ): KeyProblem[] {
    const problems: KeyProblem[] = [];
    const say = (code: KeyProblem['code'], detail: string): number => problems.push({ code, detail });
    const forged = this.#forged + this.#copied;
    if (forged > 0) say('tombstone_forged', `${forged} keys were marked as destroyed without the master key`);
    const destroyed = ledger?.entries.flatMap(({ key }) => key ?? []) ?? [];
    const returned = new Set([...this.#returned, ...destroyed.filter(isActive)]);
    const missing = destroyed.filter((id) => !this.has(id) && !returned.has(id));
    const known = Math.max(0, ...(ledger?.entries ?? []).map(({ epoch }) => epoch));
    if (ledger !== null && this.#last < known && returned.size + missing.length > damaged) {
      const came = returned.size === 0 ? '' : `; ${returned.size} destroyed keys came back`;
      say(
        'keys_stale',
        `it stands at erasure ${this.#last}, ${ledger.path} at ${known}${came}: an older copy was restored`,
      );
    } else if (returned.size > 0)
      say('slot_returned', `${returned.size} destroyed keys came back: ${[...returned].join(', ')}`);
    else if (this.#last - this.#written > damaged || missing.length > damaged)
      say(
        'slot_returned',
        `${Math.max(this.#last - this.#written, missing.length)} marks of destroyed keys are missing`,
      );
    return problems;
  }
}
