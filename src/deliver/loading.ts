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
    const loader = (take: Take): Loader =>
      new Loader(options.journal, onFailed, (events, after) => {
        take(events, after);
        onLoaded();
      });
    this.#loader = loader((events) => {
      for (const event of events) window.admit(event);
    });
    this.#reloader = loader((events, after) => window.readmit(events, after));
    this.#leftLoader = loader((events, after) => window.readmitLeft(events, after));
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
    const { position, lanes } = this.#window;
    const { room, toReload } = lanes;
    if (room === null) return;
    // What the sink has lost goes first.
    const lost = this.#held.toReload;
    if (Number.isFinite(lost)) return this.#reloader.load(lost - 1, room);
    if (Number.isFinite(toReload)) this.#leftLoader.load(toReload - 1, room);
    if (!lanes.isAnyKeepingUp) return;
    const share = this.#giveWay.share(room, {
      waiting: this.#options.journal.lastSeq - position,
      loaded: isBusy ? lanes.count : 0,
    });
    if (share !== null) this.#loader.load(position, share);
  }
}

/** @param after the seq that was asked for */
type Take = (events: readonly JournalEvent[], after: number) => void;

/** Reads the journal for a feed, one page at a time. */
class Loader {
  readonly #journal: Pick<EventLog, 'read'>;
  readonly #onFailed: LoadingEvents['onFailed'];
  readonly #take: Take;
  #isLoading = false;
  #again = false;

  constructor(journal: Pick<EventLog, 'read'>, onFailed: LoadingEvents['onFailed'], take: Take) {
    this.#journal = journal;
    this.#onFailed = onFailed;
    this.#take = take;
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
        if (events.length > 0 || this.#again) this.#take(events, after);
      },
      (error: unknown) => {
        this.#isLoading = false;
        this.#onFailed(`journal: ${messageOf(error)}`);
      },
    );
  }
}
