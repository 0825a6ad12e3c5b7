import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';
import type { FeedOptions } from './feed-options.ts';
import { GiveWay } from './give-way.ts';
import type { Held } from './held.ts';
import type { InFlightWindow } from './in-flight-window.ts';

export interface LoadingEvents {
  /** Something has been taken in. */
  readonly onLoaded: () => void;
  readonly onFailed: (reason: string) => void;
  /** There may be more to read by now. */
  readonly onTurn: () => void;
}

/**
 * What one sink is to have of the journal: what comes next, and again what the sink held and has lost, or what was left for
 * want of room.
 */
export class Loading {
  readonly #options: FeedOptions;
  readonly #window: InFlightWindow;
  readonly #held: Held;
  readonly #loader: Loader;
  readonly #reloader: Loader;
  readonly #leftLoader: Loader;
  readonly #giveWay: GiveWay;

  constructor(
    options: FeedOptions,
    window: InFlightWindow,
    held: Held,
    { onLoaded, onFailed, onTurn }: LoadingEvents,
  ) {
    this.#options = options;
    this.#window = window;
    this.#held = held;
    this.#giveWay = new GiveWay(options.clock, options.sink.limits, onTurn);
    this.#loader = new Loader(options.journal, {
      onLoaded: (events) => {
        for (const event of events) window.admit(event);
        onLoaded();
      },
      onFailed,
    });
    this.#reloader = new Loader(options.journal, {
      onLoaded: (events, after) => {
        window.readmit(events, after);
        onLoaded();
      },
      onFailed,
    });
    this.#leftLoader = new Loader(options.journal, {
      onLoaded: (events, after) => {
        window.readmitLeft(events, after);
        onLoaded();
      },
      onFailed,
    });
  }

  /** Looks at what comes in, until what it returns is called. */
  watch(): () => void {
    const { journal } = this.#options;
    const cameIn = (): void => this.#giveWay.cameIn();
    return journal.onReceived?.(cameIn) ?? journal.subscribe(cameIn);
  }

  /** How many events may go in a batch now. */
  get most(): number {
    return this.#giveWay.most;
  }

  /** Reads what there is room for. @param isBusy whether something is sent, or can be */
  load(isBusy: boolean): void {
    const { room, toReload, isAnyKeepingUp, position } = this.#window;
    if (room === null) return;
    // What the sink has lost goes first.
    const lost = this.#held.toReload;
    if (Number.isFinite(lost)) return this.#reloader.load(lost - 1, room);
    if (Number.isFinite(toReload)) this.#leftLoader.load(toReload - 1, room);
    if (!isAnyKeepingUp) return;
    const share = this.#giveWay.share(room, {
      waiting: this.#options.journal.lastSeq - position,
      loaded: isBusy ? this.#window.count : 0,
    });
    if (share !== null) this.#loader.load(position, share);
  }
}

interface LoaderEvents {
  /** @param after the seq that was asked for */
  readonly onLoaded: (events: readonly JournalEvent[], after: number) => void;
  readonly onFailed: (reason: string) => void;
}

/** Reads the journal for a feed, one page at a time. */
class Loader {
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
