import { formatTarget, type Target } from '../core/route.ts';
import { addCounts, NO_COUNTS, type ReadCounts } from './unit.ts';

/** What has become of the events of a replay, up to some position. */
export interface Counts extends ReadCounts {
  /** Events that the selection matches. */
  readonly selected: number;
  /** Of these, events without a target, as no route leads anywhere for their type. */
  readonly nowhere: number;
  /** Deliveries that a sink has refused. */
  readonly refused: number;
  /** Selected events by type. */
  readonly types: Readonly<Record<string, number>>;
  /** Deliveries by target. */
  readonly targets: Readonly<Record<string, number>>;
}

/** Most types counted by name: senders choose them, and memory and state file must not grow with them. */
const MOST_TYPES = 1000;
const OTHER = '(other types)';

/** Adds up the counts of a replay. */
export class Counter {
  read: ReadCounts;
  readonly #events = { selected: 0, nowhere: 0, refused: 0 };
  readonly #types: Map<string, number>;
  readonly #targets: Map<string, number>;

  constructor({
    types = {},
    targets = {},
    selected = 0,
    nowhere = 0,
    refused = 0,
    ...read
  }: Partial<Counts> = {}) {
    this.read = addCounts(NO_COUNTS, read);
    Object.assign(this.#events, { selected, nowhere, refused });
    this.#types = new Map(Object.entries(types));
    this.#targets = new Map(Object.entries(targets));
  }

  /** @param refused deliveries of it that were refused, by target */
  event(type: string, targets: readonly Target[], refused: ReadonlyMap<string, number> = new Map()): void {
    this.#events.selected += 1;
    const key = this.#types.has(type) || this.#types.size < MOST_TYPES ? type : OTHER;
    add(this.#types, key, 1);
    if (targets.length === 0) this.#events.nowhere += 1;
    for (const target of targets) add(this.#targets, formatTarget(target), 1);
    for (const [target, count] of refused) {
      this.#events.refused += count;
      add(this.#targets, target, -count);
    }
  }

  add(counts: Partial<ReadCounts>): void {
    this.read = addCounts(this.read, counts);
  }

  counts(): Counts {
    return {
      ...this.read,
      ...this.#events,
      types: Object.fromEntries(this.#types),
      targets: Object.fromEntries(this.#targets),
    };
  }
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}
