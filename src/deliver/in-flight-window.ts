import type { JournalEvent } from '../core/event.ts';
import type { Target } from '../core/route.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import type { Held, Seqs } from './held.ts';
import type { FeedOptions, FeedStatus, Forgotten } from './feed-options.ts';
import { Lane } from './lane.ts';
import { Item, type Pending } from './pending.ts';
import { type Chapter, chapterOf, noteOf, type Recall, recallOf } from './recall.ts';

/** Events read in one go: while these are sent, the journal reads the next. */
const LOAD_AT_ONCE = 1000;
/** Room for fewer is not worth a read. */
const LOAD_AT_LEAST = 250;

/** What a feed has loaded from the journal and not settled: how much there is, how far it goes, what may be dropped. */
export class InFlightWindow {
  readonly #options: FeedOptions;
  readonly #pending: Pending;
  readonly #held: Held;
  readonly #lanes = new Map<string | null, Lane>();
  /** What is known of the time before; null when it has all been loaded again. */
  #recall: Recall | null = null;
  /** The routes that events were loaded under, and from which seq on. */
  #routes: { readonly from: number; readonly name: string }[] = [];
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

  /** Begins where the log says that the sink stands. */
  async open(): Promise<void> {
    const { name, journal } = this.#options;
    const position = await journal.openCursor(name);
    this.begin(position, await recallOf(name, this.#options));
  }

  /**
   * @param position seq up to which everything is settled; nothing is loaded yet
   * @param recall what is settled behind that
   */
  begin(position: number, recall: Recall | null = null): void {
    this.#position = position;
    this.#recall = recall;
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
      if (upTo > after) chapters.push(chapterOf(after, upTo, name, this.#lanes));
    }
    return noteOf([...chapters, ...(this.#recall?.after(this.#position) ?? [])]);
  };

  /** Deliveries loaded and not settled. */
  get count(): number {
    return this.#count;
  }

  /** What `FeedStatus` says of it. */
  status(): Pick<FeedStatus, 'cursor' | 'pending' | 'waiting' | 'lookedAt'> {
    const waiting = this.#count + this.#held.count + this.#held.rejected;
    return { cursor: this.cursor, pending: this.#count, waiting, lookedAt: this.#position };
  }

  /** How much to read next; null when there is no room. */
  get room(): { count: number; bytes: number } | null {
    const { maxPending, maxPendingBytes } = this.#options;
    const free = maxPending - this.#count;
    const bytes = maxPendingBytes - this.#bytes;
    if (bytes <= 0 || free < Math.min(maxPending / 4, LOAD_AT_LEAST)) return null;
    return { count: Math.min(free, LOAD_AT_ONCE), bytes };
  }

  /** Takes in what the sink is to have of an event, and has not had. */
  admit(event: JournalEvent): void {
    const { name, targetsOf, routes } = this.#options;
    const { seq } = event;
    const now = routes?.().now ?? '';
    if (now !== this.#routes.at(-1)?.name) this.#turnTo(now, seq);
    this.#position = seq;
    let own = targetsOf(event).filter(({ sink }) => sink === name);
    if (this.#recall !== null) own = this.#unsettled(this.#recall, event, own);
    for (const target of own) {
      if (!this.#laneOf(target.destination).add(seq)) continue;
      this.#pending.push(event, target);
      this.#count += 1;
      this.#bytes += event.body.length;
    }
  }

  settle(item: Item): void {
    this.#release(item);
    if (item.again) this.#held.settle(item);
    this.#laneOf(item.destination).settle(item.seq);
  }

  /** The sink has confirmed what it held. */
  confirmed(seqs: Seqs): void {
    for (const [destination, own] of seqs) this.#laneOf(destination).settleAll(own);
  }

  /** It is not kept any more, and not settled: the sink confirms it later. */
  hold(item: Item, until: Promise<void>): void {
    this.#held.hold(item, until);
    this.#release(item);
    if (item.again) this.#held.settle(item);
    else this.#laneOf(item.destination).hold(item.seq);
  }

  /** Takes in anew what was held and has to be sent again, as far as it is still for the sink. */
  readmit(page: readonly JournalEvent[]): void {
    const { name, targetsOf } = this.#options;
    for (const again of this.#held.reload(page)) {
      const { event, destination } = again;
      const own = targetsOf(event).filter(({ sink }) => sink === name);
      if (own.length === 0) {
        this.#held.settle(again);
        this.#laneOf(destination).settle(event.seq);
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

  /** Up to here nothing is open, but it may be held. */
  get #floor(): number {
    let floor = this.#position;
    for (const { least } of this.#lanes.values()) floor = Math.min(floor, least - 1);
    return floor;
  }

  #unsettled(recall: Recall, event: JournalEvent, own: readonly Target[]): Target[] {
    const open = recall.open(event, own);
    for (const target of own) if (!open.includes(target)) this.#laneOf(target.destination).settle(event.seq);
    if (recall.last <= event.seq) this.#recall = null;
    return [...open];
  }

  #laneOf(destination: string | null): Lane {
    return getOrMake(this.#lanes, destination, () => new Lane((seq) => this.#held.from(destination, seq)));
  }

  #release({ bytes }: Item): void {
    this.#count -= 1;
    this.#bytes -= bytes;
  }

  #turnTo(name: string, from: number): void {
    const { cursor } = this;
    const over = this.#routes.findLastIndex((each) => each.from <= cursor + 1);
    this.#routes = [...this.#routes.slice(Math.max(0, over)), { from, name }];
  }
}
