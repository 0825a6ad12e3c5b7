import type { FeedLog } from '../core/journal.ts';
import type { Sink, TakenBack } from '../core/sink.ts';
import { orAborted } from '../lib/abort.ts';
import { Feed } from './feed.ts';
import type { FeedOptions, FeedStatus, ForgetRequest, SharedOptions } from './feed-options.ts';

interface OwnOptions extends Omit<SharedOptions, 'journal'> {
  readonly logOf: (sink: string) => FeedLog;
}

export type DispatcherOptions = Omit<OwnOptions, 'isErased'> & Partial<Pick<OwnOptions, 'isErased'>>;

export interface RemoveOptions {
  /** The sink could not be opened: a cursor that `add` made for it is removed. */
  readonly forget?: boolean;
  /** As `Feed.stop`. */
  readonly sendsLoaded?: boolean;
}

/** Delivers events to every sink, each at its own pace: one feed a sink. Sinks are added and removed while it runs. */
export class Dispatcher {
  readonly #options: OwnOptions;
  readonly #feeds = new Map<string, Feed>();
  /** Calls that removed sinks have not answered, and the names of these sinks. */
  readonly #unanswered = new Map<Promise<void>, string>();
  /** Sinks that were in trouble when they were removed: added again, they are well once they have delivered something. */
  readonly #wereInTrouble = new Set<string>();
  #stopped = false;

  constructor(options: DispatcherOptions) {
    this.#options = { isErased: () => false, ...options };
  }

  /**
   * Reads or makes the cursor of a sink, and opens it. It gets no events before `begin`: the routes may be about to change.
   * @throws what Feed.start throws; the sink is then not added
   */
  async add(name: string, sink: Sink, own: Pick<FeedOptions, 'keep' | 'patient'> = {}): Promise<void> {
    const journal = this.#options.logOf(name);
    const feed = new Feed({ ...this.#options, journal, name, sink, ...own });
    this.#feeds.set(name, feed);
    try {
      await feed.start();
      if ('maySend' in journal)
        // The seqs of this log are not in order of time, so that an erasure cannot name them: checks each event before it is sent.
        feed.progress.forget({
          upTo: Infinity,
          owned: (event) => !journal.maySend(event) || this.#options.isErased(event),
        });
    } catch (error) {
      this.#feeds.delete(name);
      feed.releaseCursor(true);
      throw error;
    }
  }

  /** Starts delivering to every sink that was added since; not after `stop`. */
  begin(): void {
    if (this.#stopped) return;
    for (const feed of this.#feeds.values()) feed.begin();
  }

  /** As `Feed.passed`; never resolves while the sink is in trouble. */
  async passed(name: string, until: 'sent' | 'settled' = 'settled'): Promise<void> {
    await this.#feeds.get(name)?.passed(until);
  }

  /**
   * Closes a sink, which may flush until `signal` aborts, and removes it. Its cursor is kept, unless it is to be forgotten.
   */
  async remove(
    name: string,
    signal: AbortSignal,
    { forget = false, sendsLoaded }: RemoveOptions = {},
  ): Promise<void> {
    const feed = this.#feeds.get(name);
    if (feed === undefined) return;
    if (this.isWell(name)) this.#wereInTrouble.delete(name);
    else if (!forget) this.#wereInTrouble.add(name);
    await feed.stop(signal, sendsLoaded);
    this.#feeds.delete(name);
    // A sink that ignores its signal may still write what it was sent.
    const late = feed.answered().finally(() => this.#unanswered.delete(late));
    this.#unanswered.set(late, name);
    feed.releaseCursor(forget);
  }

  /** The least cursor; Infinity without sinks. */
  slowestCursor(): number {
    let least = Infinity;
    for (const feed of this.#feeds.values()) least = Math.min(least, feed.progress.cursor);
    return least;
  }

  /** As `Feed.isWell`; one that was in trouble when it was removed has to deliver something first. */
  isWell(name: string): boolean {
    const feed = this.#feeds.get(name);
    if (feed?.isWell !== true) return false;
    return feed.status().delivered > 0 || !this.#wereInTrouble.has(name);
  }

  status(): readonly FeedStatus[] {
    return Array.from(this.#feeds.values(), (feed) => feed.status());
  }

  /** Events of an erased user are not sent to any sink any more. Batches in flight continue. */
  forget(request: ForgetRequest): void {
    for (const feed of this.#feeds.values()) feed.progress.forget(request);
  }

  /** As `SinkContext.takeBack`. */
  takeBack(name: string, gone: TakenBack): Promise<number> {
    return (
      this.#feeds.get(name)?.deadLetters.takeBack(gone) ?? Promise.reject(new Error(`${name} is not open`))
    );
  }

  /** Waits for the batches that are in flight now; returns the sinks that have not answered when `signal` aborts. */
  async answered(signal: AbortSignal): Promise<readonly string[]> {
    const open = new Map([
      ...Array.from(this.#feeds, ([name, feed]) => [feed.answered(), name] as const),
      ...this.#unanswered,
    ]);
    const all = Array.from(open.keys(), async (answer) => {
      await answer;
      open.delete(answer);
    });
    await orAborted(Promise.all(all), signal);
    return [...open.values()];
  }

  /** As `Feed.answered`. */
  async answeredBy(name: string): Promise<void> {
    await this.#feeds.get(name)?.answered();
  }

  /** Stops every feed; they send what they have loaded until `signal` aborts. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopped = true;
    const results = await Promise.allSettled(Array.from(this.#feeds.values(), (feed) => feed.stop(signal)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }
}
