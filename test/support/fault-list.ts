export interface InjectedFault {
  /** Resolves when it strikes for the first time. */
  readonly struck: Promise<void>;
  /** How often it has struck. */
  readonly strikes: number;
  lift(): void;
}

interface Entry<Fault> {
  readonly fault: Fault;
  left: number;
  strikes: number;
  readonly strike: () => void;
}

/** Faults in the order they were injected; the first that matches strikes, at most `times` times or until it is lifted. */
export class FaultList<Fault extends { readonly times?: number }> {
  #entries: Entry<Fault>[] = [];

  /** @param place among those there are; the last one when left out */
  inject(fault: Fault, place = this.#entries.length): InjectedFault {
    const { promise, resolve } = Promise.withResolvers<void>();
    const entry = { fault, left: fault.times ?? Infinity, strikes: 0, strike: resolve };
    this.#entries = this.#entries.toSpliced(place, 0, entry);
    return {
      struck: promise,
      get strikes() {
        return entry.strikes;
      },
      lift: () => this.#remove(entry),
    };
  }

  protected strike(matches: (fault: Fault) => boolean): Fault | null {
    const entry = this.#entries.find(({ fault }) => matches(fault));
    if (entry === undefined) return null;
    entry.strike();
    entry.strikes += 1;
    entry.left -= 1;
    if (entry.left <= 0) this.#remove(entry);
    return entry.fault;
  }

  #remove(entry: Entry<Fault>): void {
    this.#entries = this.#entries.filter((other) => other !== entry);
  }
}
