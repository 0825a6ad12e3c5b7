/** More runs than this are not kept: memory must have an end. */
const MOST = 100_000;

/** Whole numbers that come in roughly ascending order, kept as runs: a million in a row take no more than one. */
export class NumberRuns {
  readonly #runs: [first: number, last: number][] = [];

  /** In any order. Past the bound they are left out. */
  add(numbers: readonly number[]): void {
    for (const number of numbers.toSorted((one, other) => one - other)) {
      const run = this.#runs.at(-1);
      if (run !== undefined && number === run[1] + 1) run[1] = number;
      else if (this.#runs.length < MOST) this.#runs.push([number, number]);
    }
  }

  /** Each once, ascending. */
  all(): number[] {
    const all = new Set<number>();
    for (const [first, last] of this.#runs)
      for (let number = first; number <= last; number += 1) all.add(number);
    return [...all].toSorted((one, other) => one - other);
  }
}
