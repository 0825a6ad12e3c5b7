import type { Delivery, SinkLimits } from '../core/sink.ts';

/** One delivery on its way through the dispatcher. */
export interface Item extends Delivery {
  attempts: number;
  /** Monotonic milliseconds of the first try; null before it. */
  firstTry: number | null;
}

/**
 * Deliveries of one sink that wait to be sent, and the order they may be sent in.
 *
 * A delivery is ready, held (its user has an earlier one in flight or waiting to be retried) or out. Where the sink
 * keeps no order nothing is ever held. Ready ones wait in lanes, one a destination unless the sink takes mixed batches.
 */
export class Pending {
  readonly #limits: SinkLimits;
  readonly #lanes = new Map<string, Queue>();
  /** Users with something out, and what of theirs is held until it is back. */
  readonly #held = new Map<string, Item[]>();

  constructor(limits: SinkLimits) {
    this.#limits = limits;
  }

  get ready(): boolean {
    return this.#lanes.size > 0;
  }

  push(item: Item): void {
    this.#lane(item).items.push(item);
  }

  /** Takes the next batch out, or null when nothing is ready. Its users are blocked until `release`. */
  take(): Item[] | null {
    for (const [name, lane] of this.#lanes) {
      const batch = this.#fill(lane);
      this.#lanes.delete(name);
      // The lane goes to the end of the line: a busy destination does not keep the others waiting.
      if (lane.at < lane.items.length) this.#lanes.set(name, lane);
      if (batch.length > 0) return batch;
    }
    return null;
  }

  /**
   * Gives items back: to be sent again before anything else of their user, unless `settled`.
   * Call it once for all the items of a batch that are not waiting for a later retry.
   */
  release(items: readonly { item: Item; settled: boolean }[]): void {
    const back: Item[] = [];
    const users = new Set<string>();
    for (const { item, settled } of items) {
      if (!settled) back.push(item);
      const user = this.#orderKey(item);
      if (user !== null) users.add(user);
    }
    for (const user of users) {
      const held = this.#held.get(user) ?? [];
      this.#held.delete(user);
      for (const item of held) back.push(item);
    }
    this.#unshift(back);
  }

  /** Puts an item behind its user's others that wait with it; it stays out of the lanes until `release`. */
  hold(user: string, item: Item): void {
    const held = this.#held.get(user);
    if (held === undefined) this.#held.set(user, [item]);
    else held.push(item);
  }

  #fill(lane: Queue): Item[] {
    const batch: Item[] = [];
    const taken = new Set<string>();
    let bytes = 0;
    for (; lane.at < lane.items.length; lane.at += 1) {
      const item = lane.items[lane.at];
      if (item === undefined) break;
      const user = this.#orderKey(item);
      if (user !== null && !taken.has(user)) {
        if (this.#held.has(user)) {
          this.hold(user, item);
          continue;
        }
        taken.add(user);
      }
      const size = item.event.body.length;
      if (
        batch.length > 0 &&
        (batch.length >= this.#limits.batchCount || bytes + size > this.#limits.batchBytes)
      )
        break;
      bytes += size;
      batch.push(item);
    }
    for (const item of batch) {
      const user = this.#orderKey(item);
      if (user !== null && !this.#held.has(user)) this.#held.set(user, []);
    }
    return batch;
  }

  #unshift(items: readonly Item[]): void {
    const byLane = new Map<Queue, Item[]>();
    for (const item of items) {
      const lane = this.#lane(item);
      const group = byLane.get(lane);
      if (group === undefined) byLane.set(lane, [item]);
      else group.push(item);
    }
    for (const [lane, group] of byLane) {
      lane.items = [...group, ...lane.items.slice(lane.at)];
      lane.at = 0;
    }
  }

  #lane(item: Item): Queue {
    const name = this.#limits.batchBy === 'mixed' ? '' : (item.destination ?? '');
    let lane = this.#lanes.get(name);
    if (lane === undefined) this.#lanes.set(name, (lane = { items: [], at: 0 }));
    return lane;
  }

  #orderKey(item: Item): string | null {
    if (this.#limits.order === 'none' || item.event.user === null) return null;
    // Order is promised inside a destination; the same user may be on the way to two of them.
    return `${item.destination ?? ''}\n${item.event.user}`;
  }

  /** The order key of an item, for callers that must keep a user's items together. */
  keyOf(item: Item): string | null {
    return this.#orderKey(item);
  }
}

interface Queue {
  items: Item[];
  at: number;
}
