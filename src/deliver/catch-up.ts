import type { Clock } from '../core/clock.ts';
import type { SinkLimits } from '../core/sink.ts';
import type { ReadLimit } from './destinations.ts';

/** Sink limits used to throttle catch-up. */
export type CatchUpLimits = Pick<SinkLimits, 'batchCount' | 'inFlight'>;

interface Backlog {
  /** Events in the journal that are not loaded. */
  readonly waiting: number;
  /** Events in memory; 0 when all of them wait for a retry. */
  readonly loaded: number;
}

/** A sink with more events to load than this is catching up. */
const BACKLOG = 10_000;
/** For so long after an event came in, more are expected. */
const RECENT_MS = 100;

/** How a sink catches up: events read at once, time between two reads, and events in a batch. */
interface Pace {
  readonly page: number;
  readonly pauseMs: number;
  readonly batch: number;
}

/** More than one process accepts, a little at a time: a sink encodes a whole batch in one turn of the event loop. */
const SMALL: Pace = { page: 100, pauseMs: 4, batch: 200 };
/** For sinks whose calls wait for a distant server: with small batches they would send less than comes in. */
const WHOLE: Pace = { page: 250, pauseMs: 5, batch: Infinity };
/** A sink with larger batches makes an object of each: small ones would make many objects. */
const USUAL_BATCH = 1000;

/** How often the pace is chosen again. */
const LOOK_MS = 1000;
/**
 * Events per second by which the backlog shrinks: below the first, batches become whole; from the second on, small. They are more
 * than five times apart, as the two sizes of batches are, so that the pace does not change with every look.
 */
const [TOO_SLOW, FAST] = [5000, 30_000];

/**
 * Throttles a sink that catches up while events come in: a backlog can wait, a sender cannot, and both need the thread that
 * receives and the one that owns the journal.
 *
 * Modes: small ⇄ whole (batches), changed by `#look` only; small again once there is no backlog.
 */
export class CatchUp {
  readonly #clock: Clock;
  readonly #sink: CatchUpLimits;
  readonly #onTurn: () => void;
  /** Monotonic times of the last event that came in, and before which nothing is read. */
  #cameIn = Number.NEGATIVE_INFINITY;
  #next = Number.NEGATIVE_INFINITY;
  #isWaiting = false;
  #isThrottled = false;
  #pace = SMALL;
  /** The backlog at the last look; null before the first. */
  #looked: { readonly at: number; readonly waiting: number } | null = null;

  /** @param onTurn called when a read that was held back may be asked for again */
  constructor(clock: Clock, sink: CatchUpLimits, onTurn: () => void) {
    this.#clock = clock;
    this.#sink = sink;
    this.#onTurn = onTurn;
  }

  /** An event came in. */
  cameIn(): void {
    this.#cameIn = this.#clock.monotonic();
  }

  /** What may be read now; null for nothing, until `onTurn` is called or a loaded event is settled. */
  limit(room: ReadLimit, { waiting, loaded }: Backlog): ReadLimit | null {
    const now = this.#clock.monotonic();
    this.#isThrottled = waiting >= BACKLOG && now - this.#cameIn <= RECENT_MS;
    this.#look(now, waiting);
    if (!this.#isThrottled) return room;
    // A garbage collection stops the receiving thread for as long as it takes to move what is in memory.
    if (loaded >= this.batchCount * (this.#sink.inFlight + 1)) return null;
    if (now < this.#next) {
      this.#wait(this.#next - now);
      return null;
    }
    this.#next = now + this.#pace.pauseMs;
    return { count: Math.min(room.count, this.#pace.page), bytes: room.bytes };
  }

  /** How many events may go in a batch now. */
  get batchCount(): number {
    const { batchCount } = this.#sink;
    return this.#isThrottled && batchCount <= USUAL_BATCH
      ? Math.min(this.#pace.batch, batchCount)
      : batchCount;
  }

  #look(now: number, waiting: number): void {
    if (!this.#isThrottled) {
      if (waiting < BACKLOG) this.#pace = SMALL;
      this.#looked = null;
      return;
    }
    this.#looked ??= { at: now, waiting };
    const { at, waiting: before } = this.#looked;
    if (now - at < LOOK_MS) return;
    const shrinking = ((before - waiting) * 1000) / (now - at);
    if (shrinking < TOO_SLOW) this.#pace = WHOLE;
    else if (shrinking >= FAST) this.#pace = SMALL;
    this.#looked = { at: now, waiting };
  }

  #wait(ms: number): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#clock.after(ms, () => {
      this.#isWaiting = false;
      this.#onTurn();
    });
  }
}
