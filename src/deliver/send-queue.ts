import type { JournalEvent } from '../core/event.ts';
import type { SinkLimits } from '../core/sink.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import { Item, type ItemTarget } from './item.ts';

/** Deliveries of one sink that wait to be sent, and the order they may be sent in. */
export interface SendQueue {
  /** Whether `take` has something to take. */
  readonly ready: boolean;
  push(event: JournalEvent, target: ItemTarget): void;
  /**
   * Takes the next batch out, or null when nothing is ready. Nothing else of its users is taken until `release`.
   * @param most items in it; by default as many as the sink takes
   */
  take(most?: number): Item[] | null;
  /**
   * Ends the batch for these items: `again` are sent before anything else of their user.
   * Call it once for all the items of a batch that do not wait for a later retry.
   */
  release(settled: readonly Item[], again?: readonly Item[]): void;
  /** Takes out what waits behind an item of this key that waits for a retry. */
  drop(key: string | null): readonly Item[];
  /** These items of a batch are released later, to be sent again; nothing of their users is taken before. */
  postpone(items: readonly Item[]): void;
}

/** Body bytes that are redacted in one turn of the event loop, which is the receiver's too. */
const REDACTED_AT_ONCE = 2 ** 20;

/** How many bytes a batch with this item may have. */
function maxBytesWith({ redactions }: Item, batchBytes: number): number {
  return redactions.length === 0 ? batchBytes : Math.min(batchBytes, REDACTED_AT_ONCE);
}

/** Taken items are removed after so many: a queue that is never empty must not keep them for ever. */
const COMPACT_AFTER = 1024;

const NONE: readonly Item[] = [];

/** The items of one user, in order; `at` is the next one. */
interface UserQueue {
  items: Item[];
  at: number;
}

/** By order key, the next user first. */
type UserQueues = Map<string, UserQueue>;

/** Key of items without an order to keep. */
const FREE = '';

/**
 * Queue of a sink that takes several batches at a time, or a batch for each destination.
 *
 * Where the sink keeps order, a user is ready (its items wait) or out (a batch has some of its items; the others are held
 * until these are back). A batch takes all it can of one user before it goes to the next: batches with few users each can be
 * in flight side by side, and a broker gets few large groups instead of many small ones. Users take turns, so that one with
 * very many events does not keep the others waiting.
 */
export class QueuePerUser implements SendQueue {
  readonly #limits: SinkLimits;
  /** By destination; one for all where the sink takes mixed batches. */
  readonly #ready = new Map<string, UserQueues>();
  /** Users that are out, and their items that are held. */
  readonly #held = new Map<string, Item[]>();

  constructor(limits: SinkLimits) {
    this.#limits = limits;
  }

  get ready(): boolean {
    return this.#ready.size > 0;
  }

  push(event: JournalEvent, target: ItemTarget): void {
    const item = new Item(event, target, this.#limits.order === 'user');
    const held = item.key === null ? undefined : this.#held.get(item.key);
    if (held === undefined) this.#queueOf(item).items.push(item);
    else held.push(item);
  }

  take(most = this.#limits.batchCount): Item[] | null {
    for (const [name, users] of this.#ready) {
      const batch = this.#fill(users, most);
      this.#ready.delete(name);
      // To the end of the line: a busy destination does not keep the others waiting.
      if (users.size > 0) this.#ready.set(name, users);
      if (batch.length > 0) return batch;
    }
    return null;
  }

  release(settled: readonly Item[], again: readonly Item[] = NONE): void {
    for (const [key, items] of Map.groupBy(again, (item) => item.key))
      this.#putFirst([...items, ...this.drop(key)]);
    for (const item of settled) this.#putFirst(this.drop(item.key));
  }

  /** The held items of a user, who is in again. */
  drop(key: string | null): readonly Item[] {
    if (key === null) return NONE;
    const held = this.#held.get(key) ?? NONE;
    this.#held.delete(key);
    return held;
  }

  /** Its user is out already. */
  postpone(): void {}

  #fill(users: UserQueues, most: number): Item[] {
    const { batchBytes } = this.#limits;
    const batch: Item[] = [];
    let bytes = 0;
    for (const [key, queue] of users) {
      const from = batch.length;
      for (; queue.at < queue.items.length; queue.at += 1) {
        const item = queue.items[queue.at] as Item;
        const size = item.event.body.length;
        if (batch.length > 0 && (batch.length >= most || bytes + size > maxBytesWith(item, batchBytes)))
          break;
        bytes += size;
        batch.push(item);
      }
      // Full before the turn of this user, who is the first of the next batch.
      if (batch.length === from) break;
      users.delete(key);
      if (key !== FREE) this.#held.set(key, queue.items.slice(queue.at));
      else if (queue.at < queue.items.length) users.set(key, compacted(queue));
      if (batch.length >= most || (key === FREE && users.has(FREE))) break;
    }
    return batch;
  }

  /** @param items all of one key and one destination */
  #putFirst(items: readonly Item[]): void {
    const [first] = items;
    if (first === undefined) return;
    const queue = this.#queueOf(first);
    queue.items = [...items, ...queue.items.slice(queue.at)];
    queue.at = 0;
  }

  #queueOf({ destination, key }: Item): UserQueue {
    const name = this.#limits.batchBy === 'mixed' ? '' : (destination ?? '');
    return getOrMake(getOrMake(this.#ready, name, noUsers), key ?? FREE, emptyQueue);
  }
}

const noUsers = (): UserQueues => new Map();
const emptyQueue = (): UserQueue => ({ items: [], at: 0 });

function compacted(queue: UserQueue): UserQueue {
  return queue.at < COMPACT_AFTER ? queue : { items: queue.items.slice(queue.at), at: 0 };
}

/**
 * Queue of a sink that takes one mixed batch at a time: items go out in the order of the journal. Only when one waits for a
 * retry, the later ones of its user wait for it.
 */
export class QueueInOrder implements SendQueue {
  readonly #limits: SinkLimits;
  #items: Item[] = [];
  /** Index of the next one. */
  #at = 0;
  /** Items behind one of their key that waits for a retry. */
  readonly #behind = new Map<string, Item[]>();

  constructor(limits: SinkLimits) {
    this.#limits = limits;
  }

  get ready(): boolean {
    return this.#at < this.#items.length;
  }

  push(event: JournalEvent, target: ItemTarget): void {
    const item = new Item(event, target, this.#limits.order === 'user');
    this.#lineOf(item).push(item);
  }

  take(most = this.#limits.batchCount): Item[] | null {
    const { batchBytes } = this.#limits;
    const from = this.#at;
    let bytes = 0;
    let end = from;
    for (; end < this.#items.length && end - from < most; end += 1) {
      const item = this.#items[end] as Item;
      const { length } = item.event.body;
      if (end > from && bytes + length > maxBytesWith(item, batchBytes)) break;
      bytes += length;
    }
    if (end === from) return null;
    const batch = this.#items.slice(from, end);
    this.#at = end;
    if (end >= COMPACT_AFTER || end === this.#items.length) this.#putFirst(NONE);
    return batch;
  }

  release(_settled: readonly Item[], again: readonly Item[] = NONE): void {
    if (again.length > 0) this.#putFirst([...again, ...again.flatMap(({ key }) => this.drop(key))]);
  }

  drop(key: string | null): readonly Item[] {
    if (key === null) return NONE;
    const behind = this.#behind.get(key) ?? NONE;
    this.#behind.delete(key);
    return behind;
  }

  postpone(items: readonly Item[]): void {
    for (const { key } of items) if (key !== null && !this.#behind.has(key)) this.#behind.set(key, []);
    const waiting = this.#items.slice(this.#at);
    this.#items = [];
    this.#at = 0;
    for (const item of waiting) this.#lineOf(item).push(item);
  }

  #lineOf({ key }: Item): Item[] {
    if (this.#behind.size === 0 || key === null) return this.#items;
    return this.#behind.get(key) ?? this.#items;
  }

  #putFirst(items: readonly Item[]): void {
    this.#items = [...items, ...this.#items.slice(this.#at)];
    this.#at = 0;
  }
}
