import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';

export interface LoaderEvents {
  /** @param after the seq that was asked for */
  readonly onLoaded: (events: readonly JournalEvent[], after: number) => void;
  readonly onFailed: (reason: string) => void;
}

/** Reads the journal for a feed, one page at a time. */
export class Loader {
  readonly #journal: Pick<EventLog, 'read'>;
  readonly #events: LoaderEvents;
  #isLoading = false;
  #again = false;

  constructor(journal: Pick<EventLog, 'read'>, events: LoaderEvents) {
    this.#journal = journal;
    this.#events = events;
  }

  /** Loads what comes after a seq. While a page is on its way it only notes that there may be more. */
  load(after: number, room: Parameters<EventLog['read']>[1]): void {
    if (this.#isLoading) {
      // What came meanwhile may be too late for the answer on its way.
      this.#again = true;
      return;
    }
    this.#isLoading = true;
    this.#again = false;
    this.#journal.read(after, room).then(
      (events) => {
        this.#isLoading = false;
        if (events.length > 0 || this.#again) this.#events.onLoaded(events, after);
      },
      (error: unknown) => {
        this.#isLoading = false;
        this.#events.onFailed(`journal: ${messageOf(error)}`);
      },
    );
  }
}
