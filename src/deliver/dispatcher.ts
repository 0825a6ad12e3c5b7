import type { Sink, TakenBack } from '../core/sink.ts';
import { orAborted } from '../lib/abort.ts';
import { Feed } from './feed.ts';
import type { FeedOptions, FeedStatus, Forgotten, Loaded, SharedOptions } from './feed-options.ts';

export type DispatcherOptions = Omit<SharedOptions, 'isErased'> & Partial<Pick<SharedOptions, 'isErased'>>;

export interface Removal {
  readonly forget?: boolean;
  readonly loaded?: Loaded;
}

/** Everything after the 2xx: one feed a sink, each at its own pace. Sinks can come and go while it runs. */
export class Dispatcher {
  readonly #options: SharedOptions;
  readonly #feeds = new Map<string, Feed>();
  /** What sinks that were let go have not answered yet, and their names. */
  readonly #left = new Map<Promise<void>, string>();
  /** Those that were in trouble when they were let go: until they take something again, nobody knows that they are well. */
  readonly #wereInTrouble = new Set<string>();
  #stopped = false;

  constructor(options: DispatcherOptions) {
    this.#options = { isErased: () => false, ...options };
  }

  /**
   * Takes a sink in: places its cursor and opens it. It has nothing before `begin`: the routes may be about to change.
   * @throws what Feed.start throws; the sink is then not taken in
   */
  async add(name: string, sink: Sink, own: Pick<FeedOptions, 'keep' | 'patient'> = {}): Promise<void> {
    const journal = this.#options.journal.logOf?.(name) ?? this.#options.journal;
    const feed = new Feed({ ...this.#options, journal, name, sink, ...own });
    this.#feeds.set(name, feed);
    try {
      await feed.start();
      if (journal.maySend !== undefined)
        // Its seqs say nothing of when an event came, so an erasure cannot name them: each is looked at right before it is sent.
        feed.forget({
          upTo: Infinity,
          owned: (event) => journal.maySend?.(event) !== true || this.#options.isErased(event),
        });
    } catch (error) {
      this.#feeds.delete(name);
      this.#options.journal.releaseCursor(name, true);
      throw error;
    }
  }

  /** Starts delivering to every sink that was added since. After `stop` nothing begins. */
  begin(): void {
    if (this.#stopped) return;
    for (const feed of this.#feeds.values()) feed.begin();
  }

  /** As `Feed.passed`, of all that the journal holds now; never resolves while the sink is in trouble. */
  async passed(name: string, until: 'sent' | 'settled' = 'settled'): Promise<void> {
    const feed = this.#feeds.get(name);
    await feed?.passed(feed.lastSeq, until);
  }

  /**
   * Lets a sink go, flushed as far as it can be until `signal` aborts. Its cursor stays for when it comes back.
   * @param forget whether it never came to be: then nothing may wait behind a cursor that `add` placed
   */
  async remove(name: string, signal: AbortSignal, { forget = false, loaded }: Removal = {}): Promise<void> {
    const feed = this.#feeds.get(name);
    if (feed === undefined) return;
    if (this.isWell(name)) this.#wereInTrouble.delete(name);
    else if (!forget) this.#wereInTrouble.add(name);
    await feed.stop(signal, loaded);
    this.#feeds.delete(name);
    // A sink that ignores its signal may still write what it was sent.
    const late = feed.answered().finally(() => this.#left.delete(late));
    this.#left.set(late, name);
    this.#options.journal.releaseCursor(name, forget);
  }

  /** The cursor that is furthest behind; Infinity without sinks. */
  slowestCursor(): number {
    let least = Infinity;
    for (const feed of this.#feeds.values()) least = Math.min(least, feed.cursor);
    return least;
  }

  /** Whether a sink takes what it is sent. One that is only tried again after it has failed does not yet. */
  isWell(name: string): boolean {
    const status = this.#feeds.get(name)?.status();
    if (status?.mode !== 'running' || status.lastError !== null) return false;
    return status.delivered > 0 || !this.#wereInTrouble.has(name);
  }

  status(): readonly FeedStatus[] {
    return Array.from(this.#feeds.values(), (feed) => feed.status());
  }

  /** Never sends what is owned again. */
  forget(forgotten: Forgotten): void {
    for (const feed of this.#feeds.values()) feed.forget(forgotten);
  }

  /** What a sink had confirmed is gone; see `SinkContext.takeBack`. */
  takeBack(name: string, gone: TakenBack): Promise<number> {
    return this.#feeds.get(name)?.takeBack(gone) ?? Promise.reject(new Error(`${name} is not open`));
  }

  /** Waits for the batches that are in flight now; returns the sinks that have not answered when `signal` aborts. */
  async answered(signal: AbortSignal): Promise<readonly string[]> {
    const open = new Map([
      ...Array.from(this.#feeds, ([name, feed]) => [feed.answered(), name] as const),
      ...this.#left,
    ]);
    const all = Array.from(open.keys(), async (answer) => {
      await answer;
      open.delete(answer);
    });
    await orAborted(Promise.all(all), signal);
    return [...open.values()];
  }

  /** Settles when every batch of one sink that is in flight now has been answered. */
  async answeredBy(name: string): Promise<void> {
    await this.#feeds.get(name)?.answered();
  }

  /** Settles when every feed has stopped; they have until `signal` aborts to send what they have loaded. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopped = true;
    const results = await Promise.allSettled(Array.from(this.#feeds.values(), (feed) => feed.stop(signal)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }
}
