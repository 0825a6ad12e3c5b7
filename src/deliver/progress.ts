import type { JournalEvent } from '../core/event.ts';
import type { Target } from '../core/route.ts';
import type { DestinationProgress } from './destination-progress.ts';
import { Destinations } from './destinations.ts';
import type { FeedEvents, FeedOptions, FeedStatus, ForgetRequest } from './feed-options.ts';
import { Item, type ItemTarget } from './item.ts';
import type { SendQueue } from './send-queue.ts';
import { type Chapter, chapterOf, nameOf, noteOf, type SettledAhead } from './settled-ahead.ts';

/** How far one sink is: what was loaded from the journal, what of it is settled, and what must not be sent any more. */
export class Progress {
  readonly destinations: Destinations;
  /** Everything up to and including this seq has been loaded. */
  position = 0;
  readonly #options: FeedOptions;
  readonly #pending: SendQueue;
  /** What was settled before the start behind `position`; null once all of that has been loaded again. */
  #ahead: SettledAhead | null = null;
  /** The routes that events were loaded under, and from which seq on. */
  #routes: { readonly from: number; readonly name: string }[] = [];
  #forgotten: readonly ForgetRequest[] = [];

  constructor(options: FeedOptions, pending: SendQueue, events: FeedEvents) {
    this.#options = options;
    this.#pending = pending;
    this.destinations = new Destinations(options, events);
  }

  /**
   * @param position seq up to which everything is settled; nothing is loaded yet
   * @param ahead what is settled behind that
   */
  begin(position: number, ahead: SettledAhead | null = null): void {
    this.position = position;
    this.#ahead = ahead;
  }

  /** Everything up to and including this seq is settled. */
  get cursor(): number {
    return Math.min(this.position, this.destinations.first - 1);
  }

  /** Whether the sink has everything up to and including this seq: settled or held. */
  isSent(seq: number): boolean {
    return this.position >= seq && this.destinations.firstToSend > seq;
  }

  /** The text that says what is settled ahead of the cursor; null for nothing. */
  readonly note = (): string | null => {
    const { cursor } = this;
    const chapters: Chapter[] = [];
    for (const [index, { name }] of this.#routes.entries()) {
      const after = Math.max(cursor, chapters.at(-1)?.upTo ?? 0);
      const upTo = (this.#routes[index + 1]?.from ?? this.position + 1) - 1;
      if (upTo > after) chapters.push(chapterOf(after, upTo, name, this.destinations));
    }
    return noteOf([...chapters, ...(this.#ahead?.after(this.position) ?? [])]);
  };

  status(): Pick<FeedStatus, 'cursor' | 'pending' | 'held' | 'waiting' | 'lookedAt'> {
    const { count: pending, deferred, held } = this.destinations;
    const waiting = pending + deferred + held;
    return { cursor: this.cursor, pending, held, waiting, lookedAt: this.position };
  }

  /** Queues the deliveries of an event that the sink has not had. */
  admit(event: JournalEvent): void {
    const { routes } = this.#options;
    const { seq } = event;
    const now = nameOf(routes?.());
    if (now !== this.#routes.at(-1)?.name) this.#changeRoutes(now, seq);
    this.position = seq;
    let targets = this.#targetsOf(event);
    if (this.#ahead !== null) targets = this.#unsettled(this.#ahead, event, targets);
    if (this.#passesOver(event, targets)) return;
    for (const target of targets) {
      const destination = this.destinations.of(target.destination);
      if (this.destinations.isBehind(destination)) destination.defer(seq);
      else if (destination.open(seq)) this.#push(event, target, destination);
    }
  }

  settle(item: Item): void {
    this.destinations.unloaded(item);
    this.destinations.of(item.destination).settle(item.seq);
  }

  /** They are loaded again when there is room. */
  defer(items: readonly Item[]): void {
    for (const item of items) {
      this.destinations.unloaded(item);
      this.destinations.of(item.destination).defer(item.seq);
    }
  }

  hold(item: Item, until: Promise<void>): void {
    this.destinations.unloaded(item);
    this.destinations.hold(item, until);
  }

  /**
   * Queues deferred deliveries, as far as there is room and they are still for the sink.
   * @param page events after `after`; one up to `upTo` that is missing in it is not in the journal any more
   */
  readmit(page: readonly JournalEvent[], after: number, upTo: number): void {
    const events = new Map(page.map((event) => [event.seq, event]));
    for (const [name, destination] of this.destinations) {
      // In order, or events of a user would overtake each other.
      if (destination.deferred.least <= after) continue;
      for (
        let seq = destination.deferred.least;
        seq <= upTo && this.destinations.hasRoom(destination);
        seq = destination.deferred.least
      ) {
        const event = events.get(seq);
        const target = event === undefined ? null : this.#targetNow(event, name);
        if (event === undefined || target === null) destination.settle(seq);
        else if (destination.open(seq)) this.#push(event, target, destination);
      }
    }
  }

  forget(request: ForgetRequest): void {
    this.#forgotten = [...this.#forgotten.filter(({ upTo }) => upTo > this.cursor), request];
  }

  /** The items that may still be sent; settles the others. */
  unforgotten(items: readonly Item[]): readonly Item[] {
    if (this.#forgotten.length === 0) return items;
    const { gone = [], left = [] } = Object.groupBy(items, (item) =>
      this.#forgotten.some(({ upTo, owned }) => item.seq <= upTo && owned(Item.originalOf(item)))
        ? 'gone'
        : 'left',
    );
    if (gone.length === 0) return items;
    const { name, journal } = this.#options;
    for (const item of gone) {
      if ('passedOver' in journal) journal.passedOver(name, Item.originalOf(item));
      this.settle(item);
    }
    // A user with an item left stays out until that is answered: what follows must not overtake it.
    const out = new Set(left.map(({ key }) => key));
    this.#pending.release(gone.filter(({ key }) => !out.has(key)));
    return left;
  }

  #targetsOf(event: JournalEvent): Target[] {
    const { name, targetsOf } = this.#options;
    return targetsOf(event).filter(({ sink }) => sink === name);
  }

  /** Where a deferred delivery goes by the routes of now; null when it goes nowhere. */
  #targetNow(event: JournalEvent, destination: string | null): ItemTarget | null {
    const targets = this.#targetsOf(event);
    if (targets.length === 0 || this.#passesOver(event, targets)) return null;
    const same = targets.find((target) => target.destination === destination);
    const redactions = (same === undefined ? targets : [same]).flatMap((target) => target.redactions ?? []);
    return { destination, redactions };
  }

  /** Whether it goes nowhere because its user is erased. */
  #passesOver(event: JournalEvent, targets: readonly Target[]): boolean {
    const { name, journal, isErased } = this.#options;
    if (targets.length === 0 || !isErased(event)) return false;
    if ('passedOver' in journal) journal.passedOver(name, event);
    return true;
  }

  #unsettled(ahead: SettledAhead, event: JournalEvent, targets: readonly Target[]): Target[] {
    const open = ahead.open(event, targets);
    for (const target of targets)
      if (!open.includes(target)) this.destinations.of(target.destination).settle(event.seq);
    if (ahead.last <= event.seq) this.#ahead = null;
    return [...open];
  }

  #push(event: JournalEvent, target: ItemTarget, destination: DestinationProgress): void {
    this.destinations.loaded(destination, event.body.length);
    this.#pending.push(event, target);
  }

  #changeRoutes(name: string, from: number): void {
    const { cursor } = this;
    const over = this.#routes.findLastIndex((each) => each.from <= cursor + 1);
    this.#routes = [...this.#routes.slice(Math.max(0, over)), { from, name }];
  }
}
