import { getOrMake } from '../lib/get-or-make.ts';
import { DestinationProgress } from './destination-progress.ts';
import type { FeedEvents, FeedOptions } from './feed-options.ts';
import type { Item } from './item.ts';

/** How much of the journal is read in one go. */
export interface ReadLimit {
  readonly count: number;
  readonly bytes: number;
}

/** Events read in one go: while these are sent, the journal reads the next. */
const LOAD_AT_ONCE = 1000;
/** Room for fewer is not worth a read. */
const LOAD_AT_LEAST = 250;
/**
 * Shares of the free memory. A destination that cannot keep up gets no more once it has the first; with the second it defers what
 * it has. A dozen that are down leave room for the others.
 */
const [MOST, FAR_TOO_MUCH] = [1 / 4, 1 / 2];

/** The destinations of one sink, and the memory that they share. */
export class Destinations {
  /** Deliveries in memory. */
  count = 0;
  /** Deliveries that the sink has and confirms later. */
  held = 0;
  readonly #options: FeedOptions;
  readonly #events: FeedEvents;
  readonly #all = new Map<string | null, DestinationProgress>();
  /** Promises that say when held deliveries are confirmed. */
  readonly #held = new Set<Promise<void>>();
  #bytes = 0;

  constructor(options: FeedOptions, events: FeedEvents) {
    this.#options = options;
    this.#events = events;
  }

  [Symbol.iterator](): Iterator<readonly [string | null, DestinationProgress]> {
    return this.#all.entries();
  }

  of(destination: string | null): DestinationProgress {
    return getOrMake(this.#all, destination, newProgress);
  }

  /** Deliveries that are to be loaded again. */
  get deferred(): number {
    let deferred = 0;
    for (const each of this.#all.values()) deferred += each.deferred.size;
    return deferred;
  }

  /** The first event that is not settled somewhere; Infinity without any. */
  get first(): number {
    return this.#least((each) => each.first);
  }

  /** The first event that the sink does not have; Infinity without any. */
  get firstToSend(): number {
    return this.#least((each) => each.firstToSend);
  }

  /** How much to read next; null when there is no room. */
  get room(): ReadLimit | null {
    const { maxPending } = this.#options;
    const { count, bytes } = this.#free;
    if (bytes <= 0 || count < Math.min(maxPending / 4, LOAD_AT_LEAST)) return null;
    return { count: Math.min(count, LOAD_AT_ONCE), bytes };
  }

  /** False while the next event would be deferred for every destination. */
  get isAnyKeepingUp(): boolean {
    let behind = 0;
    for (const { deferred } of this.#all.values()) if (deferred.size > 0) behind += 1;
    return behind === 0 || behind < this.#known;
  }

  /** The first deferred event for which there is room again; Infinity without any. */
  get firstToReload(): number {
    return this.#least((each) => (this.#has(each, MOST / 2) ? each.deferred.least : Infinity));
  }

  /** Whether the next event is deferred: the destination cannot keep up, and others need the memory. */
  isBehind(destination: DestinationProgress): boolean {
    return destination.deferred.size > 0 || this.#takesMoreThan(MOST, destination);
  }

  /** Whether one more deferred event may be loaded. */
  hasRoom(destination: DestinationProgress): boolean {
    return this.#has(destination, MOST);
  }

  /** Whether an item that waits for a retry, and all behind it, must make room for other destinations. */
  mustDefer({ destination }: Item): boolean {
    return this.#takesMoreThan(FAR_TOO_MUCH, this.of(destination));
  }

  /** A delivery is in memory from now on. */
  loaded({ load }: DestinationProgress, bytes: number): void {
    load.count += 1;
    load.bytes += bytes;
    this.count += 1;
    this.#bytes += bytes;
  }

  /** A delivery is in memory no more. */
  unloaded({ destination, bytes, isRetried }: Item): void {
    const { load } = this.of(destination);
    load.count -= 1;
    load.bytes -= bytes;
    if (isRetried) load.retried -= 1;
    this.count -= 1;
    this.#bytes -= bytes;
  }

  /** An item has to be sent again, and waits for that. */
  retried(item: Item): void {
    if (!item.isRetried) this.of(item.destination).load.retried += 1;
    item.isRetried = true;
  }

  hold({ destination, seq }: Item, until: Promise<void>): void {
    this.of(destination).hold(seq, until);
    this.held += 1;
    if (this.#held.has(until)) return;
    this.#held.add(until);
    // A promise of the sink's; what only looks like one might call back twice.
    Promise.resolve(until).then(
      () => this.#confirm(until),
      (reason: unknown) => this.#lose(until, reason),
    );
  }

  #least(seqOf: (destination: DestinationProgress) => number): number {
    let least = Infinity;
    for (const each of this.#all.values()) least = Math.min(least, seqOf(each));
    return least;
  }

  #confirm(until: Promise<void>): void {
    const seqs = new Map(Array.from(this.#all, ([name, each]) => [name, each.settleHeld(until)]));
    let deliveries = 0;
    for (const { size } of seqs.values()) deliveries += size;
    this.#forget(until, deliveries);
    this.#events.confirmed(deliveries, seqs);
  }

  #lose(until: Promise<void>, reason: unknown): void {
    let deliveries = 0;
    for (const each of this.#all.values()) deliveries += each.deferHeld(until);
    this.#forget(until, deliveries);
    this.#events.lost(deliveries, reason);
  }

  #forget(until: Promise<void>, deliveries: number): void {
    this.#held.delete(until);
    this.held -= deliveries;
  }

  get #free(): ReadLimit {
    const { maxPending, maxPendingBytes } = this.#options;
    return { count: maxPending - this.count, bytes: maxPendingBytes - this.#bytes };
  }

  /** How many destinations there are. */
  get #known(): number {
    const { name, routes } = this.#options;
    return Math.max(this.#all.size, routes?.().destinationsIn(name) ?? 0);
  }

  #takesMoreThan(share: number, destination: DestinationProgress): boolean {
    if (destination.load.retried === 0 || this.#has(destination, share)) return false;
    return !('maySend' in this.#options.journal) && this.#known > 1;
  }

  /** Whether it has less than a share of what is free; one event it may always have. */
  #has({ load }: DestinationProgress, share: number): boolean {
    const { count, bytes } = this.#free;
    return load.count === 0 || (load.count < share * count && load.bytes < share * bytes);
  }
}

const newProgress = (): DestinationProgress => new DestinationProgress();
