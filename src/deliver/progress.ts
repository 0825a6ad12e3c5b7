import type { JournalEvent } from '../core/event.ts';
import type { Target } from '../core/route.ts';
import type { HeldDeliveries, Seqs } from './held-deliveries.ts';
import type { FeedOptions, FeedStatus, Forgotten } from './feed-options.ts';
import { Lanes } from './destinations.ts';
import { Item, type SendQueue, type Place } from './send-queue.ts';
import {
  type Chapter,
  chapterOf,
  nameOf,
  noteOf,
  type SettledAhead,
  settledAheadOf,
} from './settled-ahead.ts';

/** What a feed has loaded from the journal and not settled: how much there is, how far it goes, what may be dropped. */
export class Progress {
  readonly #options: FeedOptions;
  readonly #pending: SendQueue;
  readonly #held: HeldDeliveries;
  readonly lanes: Lanes;
  /** What is known of the time before; null when it has all been loaded again. */
  #ahead: SettledAhead | null = null;
  /** The routes that events were loaded under, and from which seq on. */
  #routes: { readonly from: number; readonly name: string }[] = [];
  #position = 0;
  /** What was loaded, up to a seq, and is not to be sent any more. */
  #forgotten: readonly Forgotten[] = [];

  constructor(options: FeedOptions, pending: SendQueue, held: HeldDeliveries) {
    this.#options = options;
    this.#pending = pending;
    this.#held = held;
    this.lanes = new Lanes(options, (destination, seq) => held.from(destination, seq));
  }

  /** Begins where the log says that the sink stands. */
  async open(): Promise<void> {
    const { name, journal } = this.#options;
    const position = await journal.openCursor(name);
    this.begin(position, await settledAheadOf(name, this.#options));
  }

  /**
   * @param position seq up to which everything is settled; nothing is loaded yet
   * @param ahead what is settled behind that
   */
  begin(position: number, ahead: SettledAhead | null = null): void {
    this.#position = position;
    this.#ahead = ahead;
  }

  /** Everything up to and including this seq has been loaded. */
  get position(): number {
    return this.#position;
  }

  /** Everything up to and including this seq is settled. */
  get cursor(): number {
    return Math.min(this.#floor, this.#held.least - 1);
  }

  /** Whether the sink has everything up to and including this seq: what is not settled of it is held. */
  isSent(seq: number): boolean {
    return this.#floor >= seq && this.#held.leastToSend > seq;
  }

  /** What is settled ahead of the cursor, in words; null for nothing. */
  readonly note = (): string | null => {
    const { cursor } = this;
    const chapters: Chapter[] = [];
    for (const [index, { name }] of this.#routes.entries()) {
      const after = Math.max(cursor, chapters.at(-1)?.upTo ?? 0);
      const upTo = (this.#routes[index + 1]?.from ?? this.#position + 1) - 1;
      if (upTo > after) chapters.push(chapterOf(after, upTo, name, this.lanes));
    }
    return noteOf([...chapters, ...(this.#ahead?.after(this.#position) ?? [])]);
  };

  /** What `FeedStatus` says of it. */
  status(): Pick<FeedStatus, 'cursor' | 'pending' | 'waiting' | 'lookedAt'> {
    const { count: pending, left } = this.lanes;
    const waiting = pending + left + this.#held.count + this.#held.rejected;
    return { cursor: this.cursor, pending, waiting, lookedAt: this.#position };
  }

  /** Takes in what the sink is to have of an event, and has not had. */
  admit(event: JournalEvent): void {
    const { routes } = this.#options;
    const { seq } = event;
    const now = nameOf(routes?.());
    if (now !== this.#routes.at(-1)?.name) this.#turnTo(now, seq);
    this.#position = seq;
    let own = this.#ownOf(event);
    if (this.#ahead !== null) own = this.#unsettled(this.#ahead, event, own);
    if (this.#passesOver(event, own)) return;
    for (const target of own) {
      const lane = this.lanes.of(target.destination);
      if (this.lanes.isBehind(lane)) lane.leave(seq);
      else if (lane.add(seq)) this.#push(event, target);
    }
  }

  settle(item: Item): void {
    this.#release(item);
    this.lanes.of(item.destination).settle(item.seq);
  }

  /** They are read again from the journal when there is room. */
  leave(items: readonly Item[]): void {
    for (const item of items) {
      this.#release(item);
      this.lanes.of(item.destination).leave(item.seq);
    }
  }

  /** The sink has confirmed what it held. */
  confirmed(seqs: Seqs): void {
    for (const [destination, own] of seqs) this.lanes.of(destination).settleAll(own);
  }

  /** It is not kept any more, and not settled: the sink confirms it later. */
  hold(item: Item, until: Promise<void>): void {
    this.#held.hold(item, until);
    this.#release(item);
    this.lanes.of(item.destination).hold(item.seq);
  }

  /** Takes in anew what was held and has to be sent again, as far as it is still for the sink. @param after as `HeldDeliveries.reload` */
  readmit(page: readonly JournalEvent[], after: number): void {
    for (const { event, destination } of this.#held.reload(page, after))
      this.#again(event, destination, true);
  }

  /** The same for what was left, as far as there is room. */
  readmitLeft(page: readonly JournalEvent[], after: number): void {
    const events = new Map(page.map((event) => [event.seq, event]));
    const upTo = page.at(-1)?.seq ?? 0;
    for (const [destination, lane] of this.lanes) {
      // In order, or a user's events would overtake each other.
      if (lane.leastLeft <= after) continue;
      for (let seq = lane.leastLeft; seq <= upTo && this.lanes.hasRoom(lane); seq = lane.leastLeft) {
        const event = events.get(seq);
        if (event === undefined) lane.settle(seq);
        else this.#again(event, destination, false);
      }
    }
  }

  forget(forgotten: Forgotten): void {
    this.#forgotten = [...this.#forgotten.filter(({ upTo }) => upTo > this.cursor), forgotten];
  }

  /** Those of the items that may be sent still; the others are settled. */
  unforgotten(items: readonly Item[]): readonly Item[] {
    if (this.#forgotten.length === 0) return items;
    const { gone = [], left = [] } = Object.groupBy(items, (item) =>
      this.#forgotten.some(({ upTo, owned }) => item.seq <= upTo && owned(Item.originalOf(item)))
        ? 'gone'
        : 'left',
    );
    if (gone.length === 0) return items;
    for (const item of gone) {
      this.#options.journal.passedOver?.(this.#options.name, Item.originalOf(item));
      this.settle(item);
    }
    // A user of whom something is sent all the same stays out until that is answered: what follows must not overtake it.
    const out = new Set(left.map(({ key }) => key));
    this.#pending.release(gone.filter(({ key }) => !out.has(key)));
    return left;
  }

  /** Up to here nothing is open, but it may be held. */
  get #floor(): number {
    return Math.min(this.#position, this.lanes.least - 1);
  }

  #ownOf(event: JournalEvent): Target[] {
    const { name, targetsOf } = this.#options;
    return targetsOf(event).filter(({ sink }) => sink === name);
  }

  /** Whether it goes nowhere because its user is erased. */
  #passesOver(event: JournalEvent, own: readonly Target[]): boolean {
    const { name, journal, isErased } = this.#options;
    if (own.length === 0 || !isErased(event)) return false;
    journal.passedOver?.(name, event);
    return true;
  }

  #unsettled(ahead: SettledAhead, event: JournalEvent, own: readonly Target[]): Target[] {
    const open = ahead.open(event, own);
    for (const target of own) if (!open.includes(target)) this.lanes.of(target.destination).settle(event.seq);
    if (ahead.last <= event.seq) this.#ahead = null;
    return [...open];
  }

  #push(event: JournalEvent, target: Place, again = false): void {
    this.lanes.took(this.lanes.of(target.destination), event.body.length);
    this.#pending.push(event, target, again);
  }

  #again(event: JournalEvent, destination: string | null, wasHeld: boolean): void {
    const lane = this.lanes.of(destination);
    const own = this.#ownOf(event);
    if (own.length === 0 || this.#passesOver(event, own)) {
      if (wasHeld) this.#held.settle({ event, destination });
      lane.settle(event.seq);
      return;
    }
    const same = own.find((target) => target.destination === destination);
    const redactions = (same === undefined ? own : [same]).flatMap((target) => target.redactions ?? []);
    if (!wasHeld) lane.add(event.seq);
    this.#push(event, { destination, redactions }, wasHeld);
  }

  #release(item: Item): void {
    this.lanes.gave(item);
    if (item.again) this.#held.settle(item);
  }

  #turnTo(name: string, from: number): void {
    const { cursor } = this;
    const over = this.#routes.findLastIndex((each) => each.from <= cursor + 1);
    this.#routes = [...this.#routes.slice(Math.max(0, over)), { from, name }];
  }
}
