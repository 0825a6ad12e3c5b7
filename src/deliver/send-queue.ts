import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { Redaction } from '../core/redaction.ts';
import type { Target } from '../core/route.ts';
import type { Delivery, SinkLimits } from '../core/sink.ts';
import { redacted } from './routes/redactor.ts';

/** What of a target matters to what waits for its sink. */
export type Place = Pick<Target, 'destination' | 'redactions'>;

/** One delivery on its way through the dispatcher. */
export class Item implements Delivery {
  readonly destination: string | null;
  /** What the event has to go without. */
  readonly redactions: readonly Redaction[];
  readonly seq: number;
  /** Size of the body as it came. */
  readonly bytes: number;
  attempts = 0;
  /** Monotonic milliseconds of the first try; null before it. */
  firstTry: number | null = null;
  /** It was tried, and has to be sent again. */
  isInVain = false;
  /** It was held before, and is to be sent again: its event was settled among those in flight then. */
  readonly again: boolean;
  /** As it came. Private: a sink is given this item, and must not find in it what was cut out of the event. */
  readonly #original: JournalEvent;
  #leaving: JournalEvent | null;
  #refusal: string | null = null;
  readonly #isOrdered: boolean;
  #key: string | null = null;

  constructor(event: JournalEvent, { destination, redactions }: Place, isOrdered: boolean, again: boolean) {
    this.destination = destination;
    this.redactions = redactions ?? NO_REDACTIONS;
    this.seq = event.seq;
    this.bytes = event.body.length;
    this.again = again;
    this.#original = event;
    this.#leaving = this.redactions.length === 0 ? event : null;
    this.#isOrdered = isOrdered && event.user !== null;
  }

  static originalOf(item: Item): JournalEvent {
    return item.#original;
  }

  /** What of the event leaves. Cut when it is first asked for, which is shortly before it is sent. */
  get event(): JournalEvent {
    return this.#leaving ?? this.#cut();
  }

  /** Why nothing of it may leave; null when it may. */
  get refusal(): string | null {
    if (this.#leaving === null) this.#cut();
    return this.#refusal;
  }

  /** What must stay in order: the user, inside a destination. Null when there is nothing to keep. */
  get key(): string | null {
    // Put together only where it is asked for.
    if (this.#isOrdered) this.#key ??= `${this.destination ?? ''}\n${this.#original.user}`;
    return this.#key;
  }

  #cut(): JournalEvent {
    const event = this.#original;
    try {
      this.#leaving = redacted(event, this.redactions);
    } catch (error) {
      this.#refusal = `what may leave of it cannot be told: ${messageOf(error)}`;
      this.#leaving = { ...event, headers: {}, clientUser: null, body: NOTHING };
    }
    return this.#leaving;
  }
}

/** Bytes that are cut in one turn of the event loop, which is the receiver's too. */
const CUT_AT_ONCE = 2 ** 20;

/** What a batch may weigh with this item in it. */
export function mostWith({ redactions }: Item, batchBytes: number): number {
  return redactions.length === 0 ? batchBytes : Math.min(batchBytes, CUT_AT_ONCE);
}

const NO_REDACTIONS: readonly Redaction[] = [];
const NOTHING = Buffer.alloc(0);

/** Deliveries of one sink that wait to be sent, and the order they may be sent in. */
export interface SendQueue {
  /** Whether there is something to take. */
  readonly ready: boolean;
  push(event: JournalEvent, target: Place, again?: boolean): void;
  /**
   * Takes the next batch out, or null when nothing is ready. Its users are out until `release`.
   * @param most events in it, no more than the sink takes; as many as it takes when left out
   */
  take(most?: number): Item[] | null;
  /**
   * Gives items back: those to be sent `again` before anything else of their user.
   * Call it once for all the items of a batch that are not waiting for a later retry.
   */
  release(settled: readonly Item[], again?: readonly Item[]): void;
  /** Takes out what waits behind what is to be sent again of a key. */
  drop(key: string | null): readonly Item[];
  /** These of a batch are released later, to be sent again; nothing of their users is taken before. */
  postpone(items: readonly Item[]): void;
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
const NONE: readonly Item[] = [];

/**
 * What waits for a sink that takes several batches at a time, or a batch for each destination.
 *
 * Where the sink keeps order, a user is ready (its items wait in a lane) or out (a batch holds some of its items; what
 * else it has is held until they are back). A batch takes all it can of one user before it goes to the next: batches
 * with few users each can be in flight side by side, and a broker gets few large groups instead of many small ones.
 * Users take turns, so one with very many events does not keep the others waiting.
 */
export class QueuePerUser implements SendQueue {
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

  push(event: JournalEvent, target: Place, again = false): void {
    const item = new Item(event, target, this.#limits.order === 'user', again);
    const held = item.key === null ? undefined : this.#held.get(item.key);
    if (held === undefined) this.#queue(item).items.push(item);
    else held.push(item);
  }

  take(most = this.#limits.batchCount): Item[] | null {
    for (const [name, lane] of this.#lanes) {
      const batch = this.#fill(lane, most);
      this.#lanes.delete(name);
      // The lane goes to the end of the line: a busy destination does not keep the others waiting.
      if (lane.size > 0) this.#lanes.set(name, lane);
      if (batch.length > 0) return batch;
    }
    return null;
  }

  release(settled: readonly Item[], again: readonly Item[] = []): void {
    for (const [key, items] of Map.groupBy(again, (item) => item.key)) {
      this.#putFirst([...items, ...this.#takeHeld(key)]);
    }
    for (const item of settled) this.#putFirst(this.#takeHeld(item.key));
  }

  drop(key: string | null): readonly Item[] {
    return this.#takeHeld(key);
  }

  /** They are out until then as it is. */
  postpone(): void {}

  #fill(lane: Lane, most: number): Item[] {
    const { batchBytes } = this.#limits;
    const batch: Item[] = [];
    let bytes = 0;
    for (const [key, queue] of lane) {
      const from = batch.length;
      for (; queue.at < queue.items.length; queue.at += 1) {
        const item = queue.items[queue.at];
        if (item === undefined) break;
        const size = item.event.body.length;
        if (batch.length > 0 && (batch.length >= most || bytes + size > mostWith(item, batchBytes))) break;
        bytes += size;
        batch.push(item);
      }
      // Full before this user had its turn: it is the first of the next batch.
      if (batch.length === from) break;
      lane.delete(key);
      if (key !== FREE) this.#held.set(key, queue.items.slice(queue.at));
      else if (queue.at < queue.items.length) lane.set(key, compacted(queue));
      if (batch.length >= most || (key === FREE && lane.has(FREE))) break;
    }
    return batch;
  }

  /** What the user of a key has waiting while it is out; it is in again. */
  #takeHeld(key: string | null): readonly Item[] {
    if (key === null) return NONE;
    const held = this.#held.get(key) ?? NONE;
    this.#held.delete(key);
    return held;
  }

  /** @param items all of one key and one destination */
  #putFirst(items: readonly Item[]): void {
    const [first] = items;
    if (first === undefined) return;
    const queue = this.#queue(first);
    queue.items = [...items, ...queue.items.slice(queue.at)];
    queue.at = 0;
  }

  #queue({ destination, key: user }: Item): Queue {
    const name = this.#limits.batchBy === 'mixed' ? '' : (destination ?? '');
    const key = user ?? FREE;
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
