import type { Clock } from '../../core/clock.ts';
import type { Event } from '../../core/event.ts';
import type { SchemaMemory, TypeMemory } from './memory.ts';

/** Share of the time that may go into looking at events, and how much of it at once, milliseconds. */
const SHARE = 0.005;
const BURST = 2;
/** So many events of each type are looked at in each second beyond that; of large ones the beginning. */
const ALWAYS = 8;
const ALWAYS_BYTES = 64 * 1024;
/** Unless so many milliseconds were taken beyond it already: what is sent is not to decide what is spent. */
const MOST_DEBT = 100;

/** Has the memory look at events, at each while there is time, and at some of each type in a flood. */
export class Looking {
  readonly #memory: SchemaMemory;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Milliseconds that may go into looking, and when that was reckoned. */
  #budget = BURST;
  #reckoned: number;
  /** Events of each type that were looked at in this second. */
  readonly #inSecond = new Map<TypeMemory, number>();
  #second = 0;
  /** Events that it looked at, and those that it did not. */
  looked = 0;
  passed = 0;

  constructor(memory: SchemaMemory, clock: Pick<Clock, 'monotonic'>) {
    this.#memory = memory;
    this.#clock = clock;
    this.#reckoned = clock.monotonic();
  }

  at(memory: TypeMemory, event: Event): void {
    const begun = this.#clock.monotonic();
    this.#budget = Math.min(BURST, this.#budget + (begun - this.#reckoned) * SHARE);
    this.#reckoned = begun;
    if (begun - this.#second >= 1000) {
      this.#second = begun;
      this.#inSecond.clear();
    }
    if (this.#budget <= 0) {
      const looked = this.#inSecond.get(memory) ?? 0;
      if (looked >= ALWAYS || this.#budget < -MOST_DEBT) {
        this.passed += 1;
        return;
      }
      this.#memory.look(memory, event, ALWAYS_BYTES);
      this.#inSecond.set(memory, looked + 1);
    } else this.#memory.look(memory, event);
    this.looked += 1;
    this.#budget -= this.#clock.monotonic() - begun;
  }
}
