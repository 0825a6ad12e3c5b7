import { messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { EventLog } from '../core/journal.ts';
import type { FeedOptions } from './feed-options.ts';
import { CatchUp, type Room } from './catch-up.ts';
import type { HeldDeliveries } from './held-deliveries.ts';
import type { Progress } from './progress.ts';

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
  readonly #progress: Progress;
  readonly #held: HeldDeliveries;
  readonly #loadNext: Load;
  readonly #loadLost: Load;
  readonly #loadLeft: Load;
  readonly #catchUp: CatchUp;

  constructor(
    options: FeedOptions,
    progress: Progress,
    held: HeldDeliveries,
    { onLoaded, onFailed, onTurn }: LoadingEvents,
  ) {
    this.#options = options;
    this.#progress = progress;
    this.#held = held;
    this.#catchUp = new CatchUp(options.clock, options.sink.limits, onTurn);
    const loader = (take: Take): Load => {
      const taken: Take = (events, after) => {
        take(events, after);
        onLoaded();
      };
      return pageLoader(options.journal, taken, onFailed);
    };
    this.#loadNext = loader((events) => {
      for (const event of events) progress.admit(event);
    });
    this.#loadLost = loader((events, after) => progress.readmit(events, after));
    this.#loadLeft = loader((events, after) => progress.readmitLeft(events, after));
  }

  /** Looks at what comes in, until what it returns is called. */
  watch(): () => void {
    const { journal } = this.#options;
    const cameIn = (): void => this.#catchUp.cameIn();
    return journal.onReceived?.(cameIn) ?? journal.subscribe(cameIn);
  }

  /** How many events may go in a batch now. */
  get most(): number {
    return this.#catchUp.most;
  }

  /** Reads what there is room for. @param isBusy whether something is sent, or can be */
  load(isBusy: boolean): void {
    const { position, lanes } = this.#progress;
    const { room, toReload } = lanes;
    if (room === null) return;
    // What the sink has lost goes first.
    const lost = this.#held.toReload;
    if (Number.isFinite(lost)) return this.#loadLost(lost - 1, room);
    if (Number.isFinite(toReload)) this.#loadLeft(toReload - 1, room);
    if (!lanes.isAnyKeepingUp) return;
    const share = this.#catchUp.share(room, {
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
