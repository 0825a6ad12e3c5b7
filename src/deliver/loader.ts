import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import { CatchUp } from './catch-up.ts';
import type { ReadLimit } from './destinations.ts';
import type { FeedEvents, FeedOptions } from './feed-options.ts';
import type { Progress } from './progress.ts';

/** Loads the next events of one sink from the journal, and again those that were deferred. */
export class Loader {
  readonly #options: FeedOptions;
  readonly #progress: Progress;
  readonly #events: FeedEvents;
  readonly catchUp: CatchUp;
  readonly #loadNext: Load;
  readonly #loadDeferred: Load;

  constructor(options: FeedOptions, progress: Progress, events: FeedEvents) {
    this.#options = options;
    this.#progress = progress;
    this.#events = events;
    this.catchUp = new CatchUp(options.clock, options.sink.limits, () => events.ready());
    this.#loadNext = this.#pageLoader((page) => {
      for (const event of page) progress.admit(event);
      return page.length > 0;
    });
    this.#loadDeferred = this.#pageLoader((page, after, upTo) => {
      progress.readmit(page, after, upTo);
      return true;
    });
  }

  /** Watches what comes in, until what it returns is called. */
  watch(): () => void {
    const { journal } = this.#options;
    const cameIn = (): void => this.catchUp.cameIn();
    return 'onReceived' in journal ? journal.onReceived(cameIn) : journal.subscribe(cameIn);
  }

  /** Reads what there is room for. @param isBusy whether something is sent, or can be */
  load(isBusy: boolean): void {
    const { position, destinations } = this.#progress;
    const { room, firstToReload } = destinations;
    if (room === null) return;
    if (Number.isFinite(firstToReload)) this.#loadDeferred(firstToReload - 1, room);
    if (!destinations.isAnyKeepingUp) return;
    const limit = this.catchUp.limit(room, {
      waiting: this.#options.journal.lastSeq - position,
      loaded: isBusy ? destinations.count : 0,
    });
    if (limit !== null) this.#loadNext(position, limit);
  }

  /** @returns loads one page at a time: while one is on its way, it only notes that there may be more */
  #pageLoader(take: Take): Load {
    const { journal } = this.#options;
    let isLoading = false;
    let again = false;
    return (after, limit) => {
      // What came since the read began may be missing in its answer.
      again = isLoading;
      if (isLoading) return;
      isLoading = true;
      const { lastSeq } = journal;
      journal.read(after, limit).then(
        (page) => {
          isLoading = false;
          if (!take(page, after, page.at(-1)?.seq ?? lastSeq) && !again) return;
          this.#events.moved();
          this.#events.ready();
        },
        (error: unknown) => {
          isLoading = false;
          this.#events.failed(`journal: ${messageOf(error)}`, 0);
        },
      );
    };
  }
}

/**
 * Takes the events after seq `after`. One up to `upTo` that is missing in the page is not in the journal any more.
 * @returns whether there may be more
 */
type Take = (page: readonly JournalEvent[], after: number, upTo: number) => boolean;
type Load = (after: number, limit: ReadLimit) => void;
