import type { Clock } from '../core/clock.ts';
import type { EventLog } from '../core/journal.ts';
import type { SinkLimits } from '../core/sink.ts';

/** How much of the journal is read in one go. */
export type Room = Parameters<EventLog['read']>[1];

/** Sink limits used to throttle catch-up. */
export type CatchUpLimits = Pick<SinkLimits, 'batchCount' | 'inFlight'>;

/** Events of a sink. */
export interface Before {
  /** Those in the journal that are not loaded. */
  readonly waiting: number;
  /** Those in memory, while any of them is being sent or can be: 0 when all of them wait for a retry. */
  readonly loaded: number;
}

/** Events that wait beyond which a sink is catching up, and is in no hurry. */
const BACKLOG = 10_000;
/** Milliseconds for which one event that comes in says that others will. */
const RECENT = 100;

/** Events that are read at a time, these milliseconds apart, and that go in a batch at most. */
interface Pace {
  readonly page: number;
  readonly apart: number;
  readonly batch: number;
}

/** More than one process takes in, a little at a time: a sink makes all of a batch in one go. */
const SMALL: Pace = { page: 100, apart: 4, batch: 200 };
/** For a sink whose calls each wait for something far away: of small batches it would take less than comes in. */
const WHOLE: Pace = { page: 250, apart: 5, batch: Infinity };
/** Sinks that take more than this at once do so because each call makes an object: of those small batches would make more. */
const USUAL_BATCH = 1000;

/** A backlog is looked at so often, in milliseconds. */
const LOOK = 1000;
/**
 * Events by which it has to become less in a second: with small batches, or whole ones go; and with whole ones, so that small ones are
 * enough. They are five times apart and more, as the batches are, or the pace would change with every look.
 */
const LEAST_SHRINKING = 5000;
const MUCH_SHRINKING = 30_000;

/**
 * Throttles a sink that catches up while events come in: what waits can wait a little longer, and a sender cannot. Both need
 * the thread that receives and the one that owns the journal.
 *
 * Modes: small ⇄ whole (batches), by `#look` alone; small again once there is no backlog.
 */
export class CatchUp {
  readonly #clock: Clock;
  readonly #sink: CatchUpLimits;
  readonly #onTurn: () => void;
  /** Monotonic times. */
  #cameIn = Number.NEGATIVE_INFINITY;
  #next = Number.NEGATIVE_INFINITY;
  #isWaiting = false;
  #holdsBack = false;
  #pace = SMALL;
  /** What waited when it was looked at last; null before. */
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

  /** What may be read now of the room there is; null for nothing, until `onTurn` is called or something loaded is settled. */
  share(room: Room, { waiting, loaded }: Before): Room | null {
    const now = this.#clock.monotonic();
    this.#holdsBack = waiting >= BACKLOG && now - this.#cameIn <= RECENT;
    this.#look(now, waiting);
    if (!this.#holdsBack) return room;
    // Each collection of garbage stops the thread that receives for as long as it takes to move what is in memory.
    if (loaded >= this.most * (this.#sink.inFlight + 1)) return null;
    if (now < this.#next) {
      this.#wait(this.#next - now);
      return null;
    }
    this.#next = now + this.#pace.apart;
    return { count: Math.min(room.count, this.#pace.page), bytes: room.bytes };
  }

  /** How many events may go in a batch now. */
  get most(): number {
    const { batchCount } = this.#sink;
    return this.#holdsBack && batchCount <= USUAL_BATCH ? Math.min(this.#pace.batch, batchCount) : batchCount;
  }

  #look(now: number, waiting: number): void {
    if (!this.#holdsBack) {
      if (waiting < BACKLOG) this.#pace = SMALL;
      this.#looked = null;
      return;
    }
    this.#looked ??= { at: now, waiting };
    const { at, waiting: before } = this.#looked;
    if (now - at < LOOK) return;
    const shrinking = ((before - waiting) * 1000) / (now - at);
    if (shrinking < LEAST_SHRINKING) this.#pace = WHOLE;
    else if (shrinking >= MUCH_SHRINKING) this.#pace = SMALL;
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
