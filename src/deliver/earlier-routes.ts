import type { Target } from '../core/route.ts';

export type RoutesFor = (type: string) => readonly Target[];

interface Change {
  /** Newest seq that was accepted under the routes before. */
  readonly upTo: number;
  readonly before: RoutesFor;
  /** How far each sink had loaded when the routes changed. */
  readonly loaded: ReadonlyMap<string, number>;
}

/**
 * What waits in the journal goes by the routes of now, unless that would lose it: a sink that was past the event when
 * the routes changed will not come back for it. Such an event goes by the routes it was accepted under as well.
 */
export class EarlierRoutes {
  readonly #now: RoutesFor;
  #changes: readonly Change[] = [];

  constructor(now: RoutesFor) {
    this.#now = now;
  }

  /** @param settled up to here no event will be asked about again */
  changed(change: Change, settled: number): void {
    this.#changes = [...this.#changes, change].filter(({ upTo }) => upTo > settled);
  }

  targetsOf(seq: number, type: string): readonly Target[] {
    let targets: readonly Target[] | null = null;
    for (const [index, { upTo, before, loaded }] of this.#changes.entries()) {
      if (seq > upTo) continue;
      const earlier: readonly Target[] = targets ?? before(type);
      const later = (this.#changes[index + 1]?.before ?? this.#now)(type);
      const added = later.filter((target) => !earlier.some((other) => isSame(target, other)));
      // A sink that was not there yet began at the end.
      const missed = added.some(({ sink }) => (loaded.get(sink) ?? Number.POSITIVE_INFINITY) >= seq);
      targets = missed ? [...earlier, ...added] : later;
    }
    return targets ?? this.#now(type);
  }
}

function isSame(one: Target, other: Target): boolean {
  return one.sink === other.sink && one.destination === other.destination;
}
