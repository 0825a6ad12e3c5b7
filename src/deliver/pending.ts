import type { Delivery, SinkLimits } from '../core/sink.ts';

/** One delivery on its way through the dispatcher. */
export interface Item extends Delivery {
  attempts: number;
  /** Monotonic milliseconds of the first try; null before it. */
  firstTry: number | null;
}

/** Items in order; `at` is the next one. */
interface Queue {
  items: Item[];
  at: number;
}

/** What waits for one destination (for all of them, if the sink takes mixed batches), by order key, next in line first. */
type Lane = Map<string, Queue>;

/** Key of what has no order to keep. */
const FREE = '';

/**
 * Deliveries of one sink that wait to be sent, and the order they may be sent in.
 *
 * Where the sink keeps order, a user is ready (its items wait in a lane) or out (a batch holds some of its items; what
 * else it has is held until they are back). A batch takes all it can of one user before it goes to the next: batches
 * with few users each can be under way side by side, and a broker gets few large groups instead of many small ones.
 * Users take turns, so one with very many events does not keep the others waiting.
 */
export class Pending {
  readonly #limits: SinkLimits;
  readonly #lanes = new Map<string, Lane>();
  /** Users that are out, and what of theirs is held. */
  readonly #held = new Map<string, Item[]>();

  constructor(limits: SinkLimits) {
    this.#limits = limits;
  }

  get ready(): boolean {
    return this.#lanes.size > 0;
  }

  push(item: Item): void {
    const key = this.keyOf(item) ?? FREE;
    const held = this.#held.get(key);
    if (held === undefined) this.#queue(item, key).items.push(item);
    else held.push(item);
  }

  /** Takes the next batch out, or null when nothing is ready. Its users are out until `release`. */
  take(): Item[] | null {
    for (const [name, lane] of this.#lanes) {
      const batch = this.#fill(lane);
      this.#lanes.delete(name);
      // The lane goes to the end of the line: a busy destination does not keep the others waiting.
      if (lane.size > 0) this.#lanes.set(name, lane);
      if (batch.length > 0) return batch;
    }
    return null;
  }

  /**
   * Gives items back: to be sent again before anything else of their user, unless `settled`.
   * Call it once for all the items of a batch that are not waiting for a later retry.
   */
  release(items: readonly { item: Item; settled: boolean }[]): void {
    const back = new Map<string, { any: Item; again: Item[] }>();
    for (const { item, settled } of items) {
      const key = this.keyOf(item) ?? FREE;
      const entry = back.get(key) ?? { any: item, again: [] };
      back.set(key, entry);
      if (!settled) entry.again.push(item);
    }
    for (const [key, { any, again }] of back) {
      const held = this.#held.get(key) ?? [];
      this.#held.delete(key);
      if (key === FREE) this.#putBack(again);
      else if (again.length + held.length > 0) this.#queue(any, key).items = [...again, ...held];
    }
  }

  /** What must stay in order: the user, inside a destination. Null when there is nothing to keep. */
  keyOf({ event, destination }: Item): string | null {
    if (this.#limits.order === 'none' || event.user === null) return null;
    return `${destination ?? ''}\n${event.user}`;
  }

  #fill(lane: Lane): Item[] {
    const { batchCount, batchBytes } = this.#limits;
    const batch: Item[] = [];
    let bytes = 0;
    for (const [key, queue] of lane) {
      const from = batch.length;
      for (; queue.at < queue.items.length; queue.at += 1) {
        const item = queue.items[queue.at];
        if (item === undefined) break;
        const size = item.event.body.length;
        if (batch.length > 0 && (batch.length >= batchCount || bytes + size > batchBytes)) break;
        bytes += size;
        batch.push(item);
      }
      // Full before this user had its turn: it is the first of the next batch.
      if (batch.length === from) break;
      lane.delete(key);
      if (key !== FREE) this.#held.set(key, queue.items.slice(queue.at));
      else if (queue.at < queue.items.length) lane.set(key, compacted(queue));
      if (batch.length >= batchCount || (key === FREE && lane.has(FREE))) break;
    }
    return batch;
  }

  #putBack(items: readonly Item[]): void {
    for (const item of items.toReversed()) {
      const queue = this.#queue(item, FREE);
      queue.items = [item, ...queue.items.slice(queue.at)];
      queue.at = 0;
    }
  }

  #queue(item: Item, key: string): Queue {
    const name = this.#limits.batchBy === 'mixed' ? '' : (item.destination ?? '');
    let lane = this.#lanes.get(name);
    if (lane === undefined) this.#lanes.set(name, (lane = new Map()));
    let queue = lane.get(key);
    if (queue === undefined) lane.set(key, (queue = { items: [], at: 0 }));
    return queue;
  }
}

/** Without the items that are gone, now and then: a queue that is never empty must not keep them for ever. */
function compacted(queue: Queue): Queue {
  return queue.at < 1024 ? queue : { items: queue.items.slice(queue.at), at: 0 };
}
