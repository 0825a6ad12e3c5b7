import { formatTarget, type Target } from '../core/route.ts';
import type { Tally } from './unit.ts';

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
  readonly #numbers = { read: 0, selected: 0, nowhere: 0, erased: 0, problems: 0, bytes: 0, refused: 0 };
  readonly #types: Map<string, number>;
  readonly #targets: Map<string, number>;

  constructor({ types, targets, ...numbers }: Partial<Counts> = {}) {
    Object.assign(this.#numbers, numbers);
    this.#types = new Map(Object.entries(types ?? {}));
    this.#targets = new Map(Object.entries(targets ?? {}));
  }

  /** @param refused how many of its deliveries have been refused, by target */
  event(type: string, targets: readonly Target[], refused: ReadonlyMap<string, number> = NONE): void {
    this.#numbers.selected += 1;
    const key = this.#types.has(type) || this.#types.size < TYPES ? type : OTHER;
    add(this.#types, key, 1);
    if (targets.length === 0) this.#numbers.nowhere += 1;
    for (const target of targets) add(this.#targets, formatTarget(target), 1);
    for (const [target, count] of refused) {
      this.#numbers.refused += count;
      add(this.#targets, target, -count);
    }
  }

  get tally(): Tally {
    const { read, erased, problems, bytes } = this.#numbers;
    return { read, erased, problems, bytes };
  }

  set tally(tally: Tally) {
    Object.assign(this.#numbers, tally);
  }

  counts(): Counts {
    return {
      ...this.#numbers,
      types: Object.fromEntries(this.#types),
      targets: Object.fromEntries(this.#targets),
    };
  }
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

const NONE: ReadonlyMap<string, number> = new Map();
