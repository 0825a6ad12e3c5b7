import { getOrMake } from '../../lib/get-or-make.ts';
import { NumberSet } from '../../lib/number-set.ts';
import { isWithin, type Stretch } from '../../lib/stretches.ts';

/** A place inside a sink; null is its default. */
export type Destination = string | null;

/** How far a sink's group is in a partition. */
export interface Progress {
  /** Everything before it is settled. */
  readonly offset: number;
  /**
   * What is settled behind that, ascending, by destination: a stretch may go over records that are not for it. Of a destination
   * that is not named nothing is.
   */
  readonly ahead: ReadonlyMap<Destination, Iterable<Stretch>>;
}

/** The same, as it was committed. */
export interface HandedOver extends Progress {
  readonly ahead: ReadonlyMap<Destination, readonly Stretch[]>;
}

export function isSettledIn({ offset, ahead }: HandedOver, at: number, destination: Destination): boolean {
  return at < offset || isWithin(ahead.get(destination) ?? [], at);
}

/** Of one destination. */
class Lane {
  readonly #open = new NumberSet();
  /** Those behind one that is open. */
  readonly #settled = new NumberSet();

  /** The first that is open; Infinity without any. */
  get least(): number {
    return this.#open.least;
  }

  isOpen(offset: number): boolean {
    return this.#open.has(offset);
  }

  add(offset: number): void {
    this.#open.add(offset);
  }

  settle(offset: number): void {
    this.#open.delete(offset);
    const { least } = this.#open;
    if (offset > least) this.#settled.add(offset);
    else this.#settled.cut(least);
  }

  /** What of a span is settled. Records that are not for it may be in a stretch, or not. */
  *settledIn(from: number, to: number): Generator<Stretch> {
    for (let at = from; at < to;) {
      const begin = at < this.least ? at : this.#settled.from(at);
      if (begin >= to) return;
      at = Math.min(this.#open.from(begin), to);
      if (at > begin) yield { from: begin, to: at };
    }
  }
}

/** What of one partition a sink has settled, while one claim to it lasts. */
export class Settled {
  readonly #before: HandedOver;
  readonly #lanes = new Map<Destination, Lane>();
  /** All before it has been read. */
  #to: number;

  /** @param before as it was handed over: reading begins at its offset */
  constructor(before: HandedOver) {
    this.#before = before;
    this.#to = before.offset;
  }

  /**
   * A record was read. In the order of the log.
   * @param died those of its destinations for which it is a dead letter
   * @returns those that have still to have it
   */
  add(
    offset: number,
    destinations: readonly Destination[],
    died: readonly Destination[] = [],
  ): readonly Destination[] {
    this.#to = offset + 1;
    return destinations.filter((destination) => {
      const lane = getOrMake(this.#lanes, destination, () => new Lane());
      const isOpen = !isSettledIn(this.#before, offset, destination) && !died.includes(destination);
      if (isOpen) lane.add(offset);
      else lane.settle(offset);
      return isOpen;
    });
  }

  settle(offset: number, destination: Destination): void {
    const lane = this.#lanes.get(destination);
    if (lane?.isOpen(offset) === true) lane.settle(offset);
  }

  settleAll(offset: number): void {
    for (const lane of this.#lanes.values()) if (lane.isOpen(offset)) lane.settle(offset);
  }

  isOpen(offset: number): boolean {
    for (const lane of this.#lanes.values()) if (lane.isOpen(offset)) return true;
    return false;
  }

  /** Null while nothing was read. */
  get progress(): Progress | null {
    if (this.#to === this.#before.offset) return null;
    let offset = this.#to;
    for (const { least } of this.#lanes.values()) offset = Math.min(offset, least);
    const destinations = new Set([...this.#lanes.keys(), ...this.#before.ahead.keys()]);
    const ahead = Array.from(destinations, (destination) => {
      const stretches = { [Symbol.iterator]: () => this.#stretches(offset, destination) };
      return [destination, stretches] as const;
    });
    return { offset, ahead: new Map(ahead) };
  }

  /** What was read; and behind that, as it was handed over. */
  *#stretches(offset: number, destination: Destination): Generator<Stretch> {
    const to = this.#to;
    const later = (this.#before.ahead.get(destination) ?? []).filter((stretch) => stretch.to > to);
    for (const stretch of (this.#lanes.get(destination) ?? NEVER_NAMED).settledIn(offset, to)) {
      // What goes on in what was handed over is one.
      const isOne = stretch.to === to && (later[0]?.from ?? Infinity) <= to;
      yield isOne ? { from: stretch.from, to: later.shift()?.to ?? to } : stretch;
    }
    for (const { from, to: end } of later) yield { from: Math.max(from, to), to: end };
  }
}

const NEVER_NAMED = new Lane();
