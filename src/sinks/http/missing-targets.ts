import type { Clock } from '../../core/clock.ts';
import type { SendResult, SinkTrouble } from '../../core/sink.ts';

/** Milliseconds until an event asks for its target again. */
const DELAY = 60_000;

/**
 * Targets that events wait for and that the config does not have: such as one that was removed before all of its events
 * were delivered. A slip in the config, and none of the event's: it waits until the config is corrected, and is told of.
 */
export class MissingTargets {
  readonly #clock: Clock;
  readonly #asked = new Map<string | null, { readonly since: number; last: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What an event is told whose target is not there. */
  asked(name: string | null): SendResult {
    const now = this.#clock.now();
    this.#asked.set(name, { since: this.#asked.get(name)?.since ?? now, last: now });
    return { status: 'retry', reason: reasonOf(name), delayMs: DELAY };
  }

  /** Those that were asked for lately: an event that still waits asks again. */
  troubles(): SinkTrouble[] {
    const now = this.#clock.now();
    for (const [name, { last }] of this.#asked) if (now - last > 2 * DELAY) this.#asked.delete(name);
    return Array.from(this.#asked, ([name, { since }]) => ({
      code: 'target_missing',
      detail: `${reasonOf(name)}, and events wait for it: put the target back under its name, or correct the routes`,
      since,
    }));
  }
}

function reasonOf(name: string | null): string {
  return name === null
    ? 'the route names no target, and the sink has no url'
    : `the sink has no target ${name}`;
}
