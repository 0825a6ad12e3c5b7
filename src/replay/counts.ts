import type { Target } from '../core/route.ts';
import { formatTarget } from '../core/route.ts';
import { addTallies, type Tally } from './unit.ts';

/** What has become of what was read; everything up to some place, or everything. */
export interface Counts extends Tally {
  /** Of what was read, events that the selection took. */
  readonly selected: number;
  /** Of these, events without a target: no route leads anywhere for their type. */
  readonly nowhere: number;
  /** Deliveries that a sink has refused for good. */
  readonly refused: number;
  /** Selected events by type. */
  readonly types: Readonly<Record<string, number>>;
  /** Deliveries by target. */
  readonly targets: Readonly<Record<string, number>>;
}

/** Senders choose the types, so neither memory nor the state file may grow with them. */
const TYPES = 1000;
const OTHER = '(other types)';

/** Counts up. */
export class Counter {
  read = 0;
  erased = 0;
  problems = 0;
  bytes = 0;
  #selected = 0;
  #nowhere = 0;
  #refused = 0;
  readonly #types: Map<string, number>;
  readonly #targets: Map<string, number>;

  constructor(before?: Counts) {
    this.#types = new Map(Object.entries(before?.types ?? {}));
    this.#targets = new Map(Object.entries(before?.targets ?? {}));
    if (before === undefined) return;
    ({ read: this.read, erased: this.erased, problems: this.problems, bytes: this.bytes } = before);
    ({ selected: this.#selected, nowhere: this.#nowhere, refused: this.#refused } = before);
  }

  /** @param refused how many of its deliveries have been refused, by target */
  event(type: string, targets: readonly Target[], refused: ReadonlyMap<string, number> = NONE): void {
    this.#selected += 1;
    const key = this.#types.has(type) || this.#types.size < TYPES ? type : OTHER;
    this.#types.set(key, (this.#types.get(key) ?? 0) + 1);
    if (targets.length === 0) this.#nowhere += 1;
    for (const target of targets.map(formatTarget)) {
      this.#targets.set(target, (this.#targets.get(target) ?? 0) + 1);
    }
    for (const [target, count] of refused) {
      this.#refused += count;
      this.#targets.set(target, (this.#targets.get(target) ?? 0) - count);
    }
  }

  add(tally: Tally): void {
    Object.assign(this, addTallies(this, tally));
  }

  counts(): Counts {
    return {
      read: this.read,
      selected: this.#selected,
      nowhere: this.#nowhere,
      erased: this.erased,
      problems: this.problems,
      bytes: this.bytes,
      refused: this.#refused,
      types: Object.fromEntries(this.#types),
      targets: Object.fromEntries(this.#targets),
    };
  }
}

const NONE: ReadonlyMap<string, number> = new Map();
