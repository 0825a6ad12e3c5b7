import type { JournalEvent } from '../core/event.ts';
import type { Delivery } from '../core/sink.ts';

/** One delivery on its way through the dispatcher. */
export class Item implements Delivery {
  readonly event: JournalEvent;
  readonly destination: string | null;
  attempts = 0;
  /** Monotonic milliseconds of the first try; null before it. */
  firstTry: number | null = null;
  /** It was held before, and is to be sent again: its event was settled among those in flight then. */
  readonly again: boolean;
  readonly #isOrdered: boolean;
  #key: string | null = null;

  constructor({ event, destination }: Delivery, isOrdered: boolean, again = false) {
    this.event = event;
    this.destination = destination;
    this.again = again;
    this.#isOrdered = isOrdered && event.user !== null;
  }

  /** What must stay in order: the user, inside a destination. Null when there is nothing to keep. */
  get key(): string | null {
    // Put together only when it is asked for: most sinks never do.
    if (this.#isOrdered) this.#key ??= `${this.destination ?? ''}\n${this.event.user}`;
    return this.#key;
  }
}
