import type { Clock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { SinkTrouble } from '../core/sink.ts';
import type { Remote } from '../lib/remote.ts';
import type { Store } from './store.ts';

/** Milliseconds between two runs, and while there is more to do. */
const EVERY = 1000;
const SOON = 50;

/** Has the store do its maintenance, a bounded amount at a time, and knows whether the journal has room for events. */
export class Upkeep {
  readonly #store: Remote<Store>;
  readonly #clock: Clock;
  #full: SinkTrouble | null = null;
  #isStopped = false;
  #cancel: (() => void) | undefined;

  /** @param isActive false in a command: it leaves maintenance to the receiver, and learns of a full journal from its writes only */
  constructor(store: Remote<Store>, clock: Clock, isActive: boolean) {
    this.#store = store;
    this.#clock = clock;
    if (isActive) this.#runIn(EVERY);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  /** Why no event can be accepted; empty when they can. */
  troubles(): readonly SinkTrouble[] {
    return this.#full === null ? [] : [this.#full];
  }

  noteRoom(): void {
    this.#full = null;
  }

  /** Notes a failed write. */
  noteFailure(error: unknown): void {
    if (error instanceof MillraceError && error.code === 'journal_full') this.#noteShortage(error.detail);
  }

  #runIn(delay: number): void {
    if (this.#isStopped) return;
    this.#cancel?.();
    this.#cancel = this.#clock.after(delay, () => {
      this.#cancel = undefined;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    // What fails for want of space is tried again.
    const isMore = await this.#store.maintain(this.#clock.now()).catch(() => false);
    // While the journal is full no events are written, so that no write would show that there is room again.
    const shortage = await this.#store.space.shortage().catch(() => null);
    if (shortage === null) this.noteRoom();
    else this.#noteShortage(shortage);
    this.#runIn(isMore ? SOON : EVERY);
  }

  #noteShortage(detail: string): void {
    const since = this.#full?.since ?? this.#clock.now();
    this.#full = { code: 'journal_full', detail, since };
  }
}
