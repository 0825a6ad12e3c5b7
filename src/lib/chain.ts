/** What can stand in a chain: in one at a time, which alone writes these. */
export interface Linked {
  /** Its neighbours. */
  sooner: this | null;
  later: this | null;
}

/**
 * Things in the order they were added in. They refer to each other, so whatever comes and goes leaves nothing to collect: Map and Set
 * make their tables anew every now and then, and each leaves its old one with all that was in it. In place of this they took a
 * seventh of the rate of a receiver.
 */
export class Chain<T extends Linked> {
  #first: T | null = null;
  #last: T | null = null;

  get first(): T | null {
    return this.#first;
  }

  /** @param item which is in no chain */
  add(item: T): void {
    item.sooner = this.#last;
    if (this.#last === null) this.#first = item;
    else this.#last.later = item;
    this.#last = item;
  }

  /** @returns false for one that is not there */
  remove(item: T): boolean {
    const { sooner, later } = item;
    if (sooner === null && this.#first !== item) return false;
    if (sooner === null) this.#first = later;
    else sooner.later = later;
    if (later === null) this.#last = sooner;
    else later.sooner = sooner;
    // One that is gone must not keep those after it in memory.
    item.sooner = null;
    item.later = null;
    return true;
  }
}
