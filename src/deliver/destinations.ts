import { getOrMake } from '../lib/get-or-make.ts';
import type { FeedOptions } from './feed-options.ts';
import { Lane } from './lane.ts';
import type { Item } from './send-queue.ts';

/** Events read in one go: while these are sent, the journal reads the next. */
const LOAD_AT_ONCE = 1000;
/** Room for fewer is not worth a read. */
const LOAD_AT_LEAST = 250;
/**
 * A destination that cannot keep up gets no more once it has this share of what is free; when it has the second one it gives back. So
 * a dozen that are down leave room for the others.
 */
const [MOST, FAR_TOO_MUCH] = [1 / 4, 1 / 2];

/** How much to read. */
interface Room {
  readonly count: number;
  readonly bytes: number;
}

/** The destinations of one sink, and what each takes of the memory that they share. */
export class Lanes {
  readonly #options: FeedOptions;
  readonly #lanes = new Map<string | null, Lane>();
  readonly #heldFrom: (destination: string | null, seq: number) => number;
  #count = 0;
  #bytes = 0;

  /** @param heldFrom as `HeldDeliveries.from` */
  constructor(options: FeedOptions, heldFrom: (destination: string | null, seq: number) => number) {
    this.#options = options;
    this.#heldFrom = heldFrom;
  }

  [Symbol.iterator](): Iterator<readonly [string | null, Lane]> {
    return this.#lanes.entries();
  }

  of(destination: string | null): Lane {
    return getOrMake(this.#lanes, destination, () => new Lane((seq) => this.#heldFrom(destination, seq)));
  }

  /** Deliveries in memory. */
  get count(): number {
    return this.#count;
  }

  /** Deliveries that are to be read again. */
  get left(): number {
    let left = 0;
    for (const lane of this.#lanes.values()) left += lane.left;
    return left;
  }

  /** The first event that is open or left somewhere; Infinity without any. */
  get least(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes.values()) least = Math.min(least, lane.least);
    return least;
  }

  /** How much to read next; null when there is no room. */
  get room(): Room | null {
    const { maxPending } = this.#options;
    const { count, bytes } = this.#free;
    if (bytes <= 0 || count < Math.min(maxPending / 4, LOAD_AT_LEAST)) return null;
    return { count: Math.min(count, LOAD_AT_ONCE), bytes };
  }

  /** Whether there is a destination for which what comes next is not just left. */
  get isAnyKeepingUp(): boolean {
    let behind = 0;
    for (const { leastLeft } of this.#lanes.values()) if (leastLeft !== Number.POSITIVE_INFINITY) behind += 1;
    return behind === 0 || behind < this.#places;
  }

  /** The first event that is left where there is room again; Infinity without any. */
  get toReload(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes.values())
      if (lane.leastLeft < first && this.#has(lane, MOST / 2)) first = lane.leastLeft;
    return first;
  }

  /** Whether the next event of a lane has to be left in the journal: it cannot keep up, and others need the memory. */
  isBehind(lane: Lane): boolean {
    return lane.leastLeft !== Number.POSITIVE_INFINITY || this.#takesTooMuch(lane, MOST);
  }

  /** Whether a lane may take one more of what was left. */
  hasRoom(lane: Lane): boolean {
    return this.#has(lane, MOST);
  }

  /** Whether there is no room to wait in for this one, and all that is behind it: its lane has to give back what it has tried in vain. */
  takesFarTooMuch({ destination }: Item): boolean {
    return this.#takesTooMuch(this.of(destination), FAR_TOO_MUCH);
  }

  took(lane: Lane, bytes: number): void {
    lane.load.count += 1;
    lane.load.bytes += bytes;
    this.#count += 1;
    this.#bytes += bytes;
  }

  gave({ destination, bytes, isInVain }: Item): void {
    const { load } = this.of(destination);
    load.count -= 1;
    load.bytes -= bytes;
    if (isInVain) load.inVain -= 1;
    this.#count -= 1;
    this.#bytes -= bytes;
  }

  /** It has to be sent again, and waits for that. */
  inVain(item: Item): void {
    if (!item.isInVain) this.of(item.destination).load.inVain += 1;
    item.isInVain = true;
  }

  get #free(): Room {
    const { maxPending, maxPendingBytes } = this.#options;
    return { count: maxPending - this.#count, bytes: maxPendingBytes - this.#bytes };
  }

  /** Destinations that there are. */
  get #places(): number {
    const { name, routes } = this.#options;
    return Math.max(this.#lanes.size, routes?.().placesIn(name) ?? 0);
  }

  #takesTooMuch(lane: Lane, share: number): boolean {
    if (lane.load.inVain === 0 || this.#has(lane, share)) return false;
    return this.#options.journal.readsOnce !== true && this.#places > 1;
  }

  /** Whether it has less than a share of what is free; an event it may have at any rate. */
  #has({ load }: Lane, share: number): boolean {
    const { count, bytes } = this.#free;
    return load.count === 0 || (load.count < share * count && load.bytes < share * bytes);
  }
}
