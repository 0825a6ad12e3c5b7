import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';
import type { FeedOptions } from './feed-options.ts';
import { GiveWay, type Room } from './give-way.ts';
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
  readonly #loadNext: Load;
  readonly #loadLost: Load;
  readonly #loadLeft: Load;
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
    const loader = (take: Take): Load => {
      const taken: Take = (events, after) => {
        take(events, after);
        onLoaded();
      };
      return pageLoader(options.journal, taken, onFailed);
    };
    this.#loadNext = loader((events) => {
      for (const event of events) window.admit(event);
    });
    this.#loadLost = loader((events, after) => window.readmit(events, after));
    this.#loadLeft = loader((events, after) => window.readmitLeft(events, after));
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
    if (Number.isFinite(lost)) return this.#loadLost(lost - 1, room);
    if (Number.isFinite(toReload)) this.#loadLeft(toReload - 1, room);
    if (!lanes.isAnyKeepingUp) return;
    const share = this.#giveWay.share(room, {
      waiting: this.#options.journal.lastSeq - position,
      loaded: isBusy ? lanes.count : 0,
    });
    if (share !== null) this.#loadNext(position, share);
  }
}

/** @param after the seq that was asked for */
type Take = (events: readonly JournalEvent[], after: number) => void;
type Load = (after: number, room: Room) => void;

/**
 * Reads the journal for a feed, one page at a time.
 * @returns what loads the page after a seq; while one is on its way it only notes that there may be more
 */
function pageLoader(journal: Pick<EventLog, 'read'>, take: Take, onFailed: (reason: string) => void): Load {
  let isLoading = false;
  let again = false;
  return (after, room) => {
    // What came meanwhile may be too late for the answer on its way.
    again = isLoading;
    if (isLoading) return;
    isLoading = true;
    journal.read(after, room).then(
      (events) => {
        isLoading = false;
        if (events.length > 0 || again) take(events, after);
      },
      (error: unknown) => {
        isLoading = false;
        onFailed(`journal: ${messageOf(error)}`);
      },
    );
  };
}
