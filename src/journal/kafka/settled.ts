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

/** With single deliveries beside. */
export function withDeliveries(
  { offset, ahead }: HandedOver,
  settled: Iterable<{ readonly destination: Destination; readonly offset: number }>,
): HandedOver {
  const all = new Map(Array.from(ahead, ([destination, stretches]) => [destination, [...stretches]]));
  for (const { destination, offset: from } of settled)
    if (from >= offset) getOrMake(all, destination, () => []).push({ from, to: from + 1 });
  return { offset, ahead: new Map(Array.from(all, ([destination, some]) => [destination, joined(some)])) };
}

/** Ascending, none touching the next. */
function joined(stretches: readonly Stretch[]): readonly Stretch[] {
  const found: Stretch[] = [];
  for (const { from, to } of stretches.toSorted((one, other) => one.from - other.from)) {
    const last = found.at(-1);
    if (last === undefined || last.to < from) found.push({ from, to });
    else found[found.length - 1] = { from: last.from, to: Math.max(last.to, to) };
  }
  return found;
}

/** What of one partition a sink has settled, while one claim to it lasts. */
export class Settled {
  readonly #before: HandedOver;
  readonly #open = new Map<Destination, NumberSet>();
  /** All before it has been read. */
  #to: number;

  /** @param before as it was handed over: reading begins at its offset */
  constructor(before: HandedOver) {
    this.#before = before;
    this.#to = before.offset;
  }

  /** A record was read. In the order of the log. @returns those of its destinations that have still to have it */
  add(offset: number, destinations: readonly Destination[]): readonly Destination[] {
    this.#to = offset + 1;
    return destinations.filter((destination) => {
      const open = getOrMake(this.#open, destination, () => new NumberSet());
      if (isSettledIn(this.#before, offset, destination)) return false;
      open.add(offset);
      return true;
    });
  }

  settle(offset: number, destination: Destination): void {
    this.#open.get(destination)?.delete(offset);
  }

  settleAll(offset: number): void {
    for (const open of this.#open.values()) open.delete(offset);
  }

  isOpen(offset: number): boolean {
    for (const open of this.#open.values()) if (open.has(offset)) return true;
    return false;
  }

  /** Null while nothing was read. */
  get progress(): Progress | null {
    if (this.#to === this.#before.offset) return null;
    let offset = this.#to;
    for (const open of this.#open.values()) offset = Math.min(offset, open.least);
    const destinations = new Set([...this.#open.keys(), ...this.#before.ahead.keys()]);
    const ahead = Array.from(destinations, (destination) => {
      const stretches = { [Symbol.iterator]: () => this.#stretches(offset, destination) };
      return [destination, stretches] as const;
    });
    return { offset, ahead: new Map(ahead) };
  }

  /** Between what is open; and behind what was read, as it was handed over. */
  *#stretches(offset: number, destination: Destination): Generator<Stretch> {
    const to = this.#to;
    const later = (this.#before.ahead.get(destination) ?? []).filter((stretch) => stretch.to > to);
    const open = this.#open.get(destination);
    for (let from = offset; from < to;) {
      const next = Math.min(open?.from(from) ?? to, to);
      // What goes on in what was handed over is one.
      const isLast = next === to && (later[0]?.from ?? Infinity) <= to;
      if (next > from) yield { from, to: isLast ? (later.shift()?.to ?? to) : next };
      from = next + 1;
    }
    for (const { from, to: end } of later) yield { from: Math.max(from, to), to: end };
  }
}
