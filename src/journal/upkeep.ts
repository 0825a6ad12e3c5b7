import type { Clock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { SinkTrouble } from '../core/sink.ts';
import type { Remote } from '../lib/remote.ts';
import type { Store } from './store.ts';

/** Milliseconds between two looks, and while there is more to do. */
const EVERY = 1000;
const SOON = 50;

/** What of the store is looked at. */
interface Upkept {
  readonly maintain: Remote<Store>['maintain'];
  readonly space: Pick<Remote<Store>['space'], 'shortage'>;
}

/**
 * Has the store clear away what is past its time, a bounded amount at a time, and knows whether it can take more. It
 * looks for itself, for where nothing is sent because it was full, no write can show that it no longer is.
 */
export class Upkeep {
  readonly #store: Upkept;
  readonly #clock: Clock;
  #full: SinkTrouble | null = null;
  #isOver = false;
  #cancel: (() => void) | undefined;

  /** @param looks false: it goes by writes only, and clears nothing away */
  constructor(store: Upkept, clock: Clock, looks: boolean) {
    this.#store = store;
    this.#clock = clock;
    if (looks) this.#lookIn(EVERY);
  }

  stop(): void {
    this.#isOver = true;
    this.#cancel?.();
  }

  /** Why nothing can be taken now; empty when it can. */
  troubles(): readonly SinkTrouble[] {
    return this.#full === null ? [] : [this.#full];
  }

  /** The same as a part of a status: nothing when there is nothing to tell. */
  told(): { readonly troubles?: readonly SinkTrouble[] } {
    return this.#full === null ? {} : { troubles: this.troubles() };
  }

  /** Notes whether there was room for a write. */
  async noting<T>(write: Promise<T>): Promise<T> {
    try {
      const result = await write;
      this.#full = null;
      return result;
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'journal_full') this.#noteShortage(error.detail);
      throw error;
    }
  }

  #lookIn(delay: number): void {
    if (this.#isOver) return;
    this.#cancel?.();
    this.#cancel = this.#clock.after(delay, () => {
      this.#cancel = undefined;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    // What cannot be cleared away for want of space is tried again.
    const more = await this.#store.maintain(this.#clock.now()).catch(() => false);
    const shortage = await this.#store.space.shortage().catch(() => null);
    if (shortage === null) this.#full = null;
    else this.#noteShortage(shortage);
    this.#lookIn(more ? SOON : EVERY);
  }

  #noteShortage(detail: string): void {
    const since = this.#full?.since ?? this.#clock.now();
    this.#full = { code: 'journal_full', detail, since };
  }
}
