import type { JournalEvent } from '../core/event.ts';
import type { Held } from './held.ts';
import type { FeedOptions, Forgotten } from './feed-options.ts';
import { OffsetTracker } from './offset-tracker.ts';
import { Item, type Pending } from './pending.ts';

/** Events read in one go: while these are sent, the journal reads the next. */
const LOAD_AT_ONCE = 1000;
/** Room for fewer is not worth a read. */
const LOAD_AT_LEAST = 250;

/** What a feed has loaded from the journal and not settled: how much there is, how far it goes, what may be dropped. */
export class InFlightWindow {
  readonly #options: FeedOptions;
  readonly #pending: Pending;
  readonly #held: Held;
  #offsets = new OffsetTracker(0);
  #position = 0;
  #count = 0;
  #bytes = 0;
  /** What was loaded, up to a seq, and is not to be sent any more. */
  #forgotten: readonly Forgotten[] = [];

  constructor(options: FeedOptions, pending: Pending, held: Held) {
    this.#options = options;
    this.#pending = pending;
    this.#held = held;
  }

  /** @param position seq up to which everything is settled; nothing is loaded yet */
  begin(position: number): void {
    this.#position = position;
    this.#offsets = new OffsetTracker(position);
  }

  /** Everything up to and including this seq has been loaded. */
  get position(): number {
    return this.#position;
  }

  /** Everything up to and including this seq is settled. */
  get cursor(): number {
    return Math.min(this.#offsets.floor, this.#held.least - 1);
  }

  /** Whether the sink has everything up to and including this seq: what is not settled of it is held. */
  isSent(seq: number): boolean {
    return this.#offsets.floor >= seq && this.#held.leastToSend > seq;
  }

  /** Deliveries loaded and not settled. */
  get count(): number {
    return this.#count;
  }

  /** How much to read next; null when there is no room. */
  get room(): { count: number; bytes: number } | null {
    const { maxPending, maxPendingBytes } = this.#options;
    const free = maxPending - this.#count;
    const bytes = maxPendingBytes - this.#bytes;
    if (bytes <= 0 || free < Math.min(maxPending / 4, LOAD_AT_LEAST)) return null;
    return { count: Math.min(free, LOAD_AT_ONCE), bytes };
  }

  /** Takes in what the sink is to have of an event. */
  admit(event: JournalEvent): void {
    const { name, targetsOf } = this.#options;
    this.#position = event.seq;
    let deliveries = 0;
    for (const target of targetsOf(event)) {
      if (target.sink !== name) continue;
      deliveries += 1;
      this.#pending.push(event, target);
    }
    this.#count += deliveries;
    this.#bytes += deliveries * event.body.length;
    this.#offsets.add(event.seq, deliveries);
  }

  settle(item: Item): void {
    this.#count -= 1;
    this.#bytes -= item.bytes;
    if (item.again) this.#held.settle(item);
    else this.#offsets.settle(item.seq);
  }

  /** It is not kept any more, and not settled: the sink confirms it later. */
  hold(item: Item, until: Promise<void>): void {
    this.#held.hold(item, until);
    this.settle(item);
  }

  /** Takes in anew what was held and has to be sent again, as far as it is still for the sink. */
  readmit(page: readonly JournalEvent[]): void {
    const { name, targetsOf } = this.#options;
    for (const again of this.#held.reload(page)) {
      const { event, destination } = again;
      const own = targetsOf(event).filter(({ sink }) => sink === name);
      if (own.length === 0) {
        this.#held.settle(again);
        continue;
      }
      const same = own.find((target) => target.destination === destination);
      const redactions = (same === undefined ? own : [same]).flatMap((target) => target.redactions ?? []);
      this.#count += 1;
      this.#bytes += event.body.length;
      this.#pending.push(event, { destination, redactions }, true);
    }
  }

  forget(forgotten: Forgotten): void {
    this.#forgotten = [...this.#forgotten.filter(({ upTo }) => upTo > this.cursor), forgotten];
  }

  /** Those of the items that may be sent still; the others are settled. */
  unforgotten(items: readonly Item[]): readonly Item[] {
    if (this.#forgotten.length === 0) return items;
    const gone = items.filter((item) =>
      this.#forgotten.some(({ upTo, owned }) => item.seq <= upTo && owned(Item.originalOf(item))),
    );
    if (gone.length === 0) return items;
    for (const item of gone) this.settle(item);
    this.#pending.release(gone);
    return items.filter((item) => !gone.includes(item));
  }
}
