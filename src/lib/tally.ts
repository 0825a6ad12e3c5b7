/** Name under which the rest is counted when there are too many names. */
const OTHER = '(other)';
const LONGEST = 120;

/** Counts by names that others choose, such as event types, with a limit on the number of names. */
export class Tally {
  readonly #max: number;
  readonly #counts = new Map<string, number>();

  constructor(max = 100) {
    this.#max = max;
  }

  add(name: string, by = 1): void {
    const known = this.#counts.get(name);
    if (known !== undefined) this.#counts.set(name, known + by);
    else if (this.#counts.size < this.#max && name.length <= LONGEST) this.#counts.set(name, by);
    else this.#counts.set(OTHER, (this.#counts.get(OTHER) ?? 0) + by);
  }

  has(name: string): boolean {
    return this.#counts.has(name);
  }

  get(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  get total(): number {
    let sum = 0;
    for (const count of this.#counts.values()) sum += count;
    return sum;
  }

  [Symbol.iterator](): Iterator<[name: string, count: number]> {
    return this.#counts[Symbol.iterator]();
  }

  clear(): void {
    this.#counts.clear();
  }
}
