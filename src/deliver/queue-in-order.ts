import type { JournalEvent } from '../core/event.ts';
import type { SinkLimits } from '../core/sink.ts';
import { Item, mostWith, type SendQueue, type Place } from './send-queue.ts';

/** Taken items are let go now and then: a queue that is never empty must not keep them for ever. */
const COMPACT = 1024;

/**
 * What waits for a sink that takes one mixed batch at a time: it goes out in the order of the journal. Nobody looks at whose
 * an event is, until one has to be sent again later than the rest: what follows of its user then waits for it.
 */
export class QueueInOrder implements SendQueue {
  readonly #limits: SinkLimits;
  #items: Item[] = [];
  /** Index of the next one. */
  #at = 0;
  /** What follows, by key, something that is to be sent again later. */
  readonly #behind = new Map<string, Item[]>();

  constructor(limits: SinkLimits) {
    this.#limits = limits;
  }

  get ready(): boolean {
    return this.#at < this.#items.length;
  }

  push(event: JournalEvent, target: Place, again = false): void {
    const item = new Item(event, target, this.#limits.order === 'user', again);
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
      if (end > from && bytes + length > mostWith(item, batchBytes)) break;
      bytes += length;
    }
    if (end === from) return null;
    const batch = this.#items.slice(from, end);
    this.#at = end;
    if (end >= COMPACT || end === this.#items.length) this.#restart([]);
    return batch;
  }

  release(_settled: readonly Item[], again: readonly Item[] = []): void {
    if (again.length > 0) this.#restart([...again, ...again.flatMap((item) => this.#takeBehind(item.key))]);
  }

  drop(key: string | null): readonly Item[] {
    return this.#takeBehind(key);
  }

  postpone(items: readonly Item[]): void {
    for (const { key } of items) if (key !== null && !this.#behind.has(key)) this.#behind.set(key, []);
    const waiting = this.#items.slice(this.#at);
    this.#items = [];
    this.#at = 0;
    for (const item of waiting) this.#lineOf(item).push(item);
  }

  #lineOf(item: Item): Item[] {
    if (this.#behind.size === 0 || item.key === null) return this.#items;
    return this.#behind.get(item.key) ?? this.#items;
  }

  #takeBehind(key: string | null): readonly Item[] {
    const behind = key === null ? undefined : this.#behind.get(key);
    if (key !== null) this.#behind.delete(key);
    return behind ?? [];
  }

  #restart(first: readonly Item[]): void {
    this.#items = [...first, ...this.#items.slice(this.#at)];
    this.#at = 0;
  }
}
