import type { Clock } from '../core/clock.ts';
import { Item } from './pending.ts';

/** How old deliveries are, for who gives up on them. */
export class Ages {
  readonly #clock: Clock;
  /** What a clock that nobody sets would add to the monotonic time. */
  readonly #begin: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#begin = clock.now() - clock.monotonic();
  }

  /**
   * Milliseconds since the event was received; a restart begins nothing anew. Of one that was put back, released or is replayed: since it
   * was tried first, for it is wanted however old it is. A clock that is set makes nothing older.
   */
  of(item: Item): number {
    const now = this.#clock.monotonic();
    const tried = item.firstTry === null ? 0 : now - item.firstTry;
    const { receivedAt, handling, again = handling.only ?? null } = Item.originalOf(item);
    if (again !== null || handling.replayId !== undefined || handling.released === true) return tried;
    return Math.max(tried, Math.min(this.#clock.now(), this.#begin + now) - receivedAt);
  }
}
