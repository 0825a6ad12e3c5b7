import type { Clock } from '../core/clock.ts';
import type { EventLog } from '../core/journal.ts';

/** How much of the journal is read in one go. */
export type Room = Parameters<EventLog['read']>[1];

/** Events that wait beyond which a sink is catching up, and is in no hurry. */
const BACKLOG = 10_000;
/** Milliseconds for which one event that comes in says that others will. */
const RECENT = 100;
/**
 * Then so many are read at a time, these milliseconds apart; more of them where so many are in flight. It is always more than one
 * process takes in, or the sink would never catch up.
 */
const PAGE = 250;
const APART = 5;
const MANY = 2000;
const FAR_APART = 10;

/**
 * Holds back a sink that catches up while events come in: what waits can wait a little longer, and a sender cannot. Both need
 * the thread that receives and the one that owns the journal.
 */
export class GiveWay {
  readonly #clock: Clock;
  readonly #onTurn: () => void;
  /** Monotonic times. */
  #cameIn = Number.NEGATIVE_INFINITY;
  #next = Number.NEGATIVE_INFINITY;
  #isWaiting = false;

  /** @param onTurn called when a read that was held back may be asked for again */
  constructor(clock: Clock, onTurn: () => void) {
    this.#clock = clock;
    this.#onTurn = onTurn;
  }

  /** An event came in. */
  cameIn(): void {
    this.#cameIn = this.#clock.monotonic();
  }

  /** What may be read now of the room there is; null for nothing, until `onTurn` is called. */
  share(room: Room, waiting: number, inFlight: number): Room | null {
    const now = this.#clock.monotonic();
    if (waiting < BACKLOG || now - this.#cameIn > RECENT) return room;
    if (now < this.#next) {
      this.#wait(this.#next - now);
      return null;
    }
    this.#next = now + (inFlight < MANY ? APART : FAR_APART);
    return { count: Math.min(room.count, PAGE), bytes: room.bytes };
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
