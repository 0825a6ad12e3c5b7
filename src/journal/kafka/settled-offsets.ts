import { getOrMake } from '../../lib/get-or-make.ts';
import { NumberSet } from '../../lib/number-set.ts';
import { isWithin, type Stretch } from '../../lib/stretches.ts';

/** A place inside a sink; null is its default. */
export type Destination = string | null;

/** How far a sink's group is in a partition. */
export interface Checkpoint {
  /** Everything before it is settled. */
  readonly offset: number;
  /**
   * What is settled behind the offset, ascending, by destination. A stretch may contain records that are not for the
   * destination. Nothing is settled for a destination that is missing.
   */
  readonly ahead: ReadonlyMap<Destination, Iterable<Stretch>>;
}

/** A checkpoint as it was committed. */
export interface CommittedCheckpoint extends Checkpoint {
  readonly ahead: ReadonlyMap<Destination, readonly Stretch[]>;
}

export function isSettledIn(
  { offset, ahead }: CommittedCheckpoint,
  at: number,
  destination: Destination,
): boolean {
  return at < offset || isWithin(ahead.get(destination) ?? [], at);
}

/** The offsets of one destination. */
class DestinationOffsets {
  readonly open = new NumberSet();
  /** Those behind an open one. */
  readonly #settled = new NumberSet();

  settle(offset: number): void {
    this.open.delete(offset);
    const { least } = this.open;
    if (offset > least) this.#settled.add(offset);
    else this.#settled.cut(least);
  }

  /** The settled stretches between two offsets. Records for other destinations may be in a stretch, or not. */
  *settledIn(from: number, to: number): Generator<Stretch> {
    for (let at = from; at < to;) {
      const begin = at < this.open.least ? at : this.#settled.from(at);
      if (begin >= to) return;
      at = Math.min(this.open.from(begin), to);
      if (at > begin) yield { from: begin, to: at };
    }
  }
}

/** What a sink has settled in one partition, during one lease. */
export class SettledOffsets {
  readonly #before: CommittedCheckpoint;
  readonly #destinations = new Map<Destination, DestinationOffsets>();
  /** All before it has been read. */
  #to: number;

  /** @param before the checkpoint at which reading begins */
  constructor(before: CommittedCheckpoint) {
    this.#before = before;
    this.#to = before.offset;
  }

  /**
   * Adds a record that was read, in the order of the log.
   * @param dead those of its destinations for which it is a dead letter
   * @returns the destinations for which it is not settled
   */
  add(
    offset: number,
    destinations: readonly Destination[],
    dead: readonly Destination[] = [],
  ): readonly Destination[] {
    this.#to = offset + 1;
    return destinations.filter((destination) => {
      const offsets = getOrMake(this.#destinations, destination, () => new DestinationOffsets());
      const isOpen = !isSettledIn(this.#before, offset, destination) && !dead.includes(destination);
      if (isOpen) offsets.open.add(offset);
      else offsets.settle(offset);
      return isOpen;
    });
  }

  settle(offset: number, destination: Destination): void {
    const offsets = this.#destinations.get(destination);
    if (offsets?.open.has(offset) === true) offsets.settle(offset);
  }

  settleAll(offset: number): void {
    for (const offsets of this.#destinations.values()) if (offsets.open.has(offset)) offsets.settle(offset);
  }

  isOpen(offset: number): boolean {
    for (const offsets of this.#destinations.values()) if (offsets.open.has(offset)) return true;
    return false;
  }

  /** Null while nothing was read. */
  get checkpoint(): Checkpoint | null {
    if (this.#to === this.#before.offset) return null;
    let offset = this.#to;
    for (const { open } of this.#destinations.values()) offset = Math.min(offset, open.least);
    const destinations = new Set([...this.#destinations.keys(), ...this.#before.ahead.keys()]);
    const ahead = Array.from(destinations, (destination) => {
      const stretches = { [Symbol.iterator]: () => this.#stretches(offset, destination) };
      return [destination, stretches] as const;
    });
    return { offset, ahead: new Map(ahead) };
  }

  /** Of what was read, and then of what was committed before. */
  *#stretches(offset: number, destination: Destination): Generator<Stretch> {
    const to = this.#to;
    const later = (this.#before.ahead.get(destination) ?? []).filter((stretch) => stretch.to > to);
    for (const stretch of (this.#destinations.get(destination) ?? NONE).settledIn(offset, to)) {
      // One stretch where both parts touch.
      const isOne = stretch.to === to && (later[0]?.from ?? Infinity) <= to;
      yield isOne ? { from: stretch.from, to: later.shift()?.to ?? to } : stretch;
    }
    for (const { from, to: end } of later) yield { from: Math.max(from, to), to: end };
  }
}

const NONE = new DestinationOffsets();
