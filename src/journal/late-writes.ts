import type { Clock } from '../core/clock.ts';
import type { Remote } from '../lib/remote.ts';
import type { PassedOver } from './erased-alone.ts';
import type { Store } from './store.ts';

/** Milliseconds that a write waits for more. */
const DELAY = 200;

interface Move {
  readonly seq: number;
  /** Called when the move is written. */
  readonly note?: (() => string | null) | undefined;
}

/**
 * Writes that may come a little late: moves of cursors, and events of erased users that came in or were not sent. A cursor that is
 * behind after a crash costs repeated deliveries, never a loss.
 */
export class LateWrites {
  readonly #store: Remote<Store>;
  readonly #clock: Clock;
  readonly #moves = new Map<string, Move>();
  #erased: number[] = [];
  #passedOver: PassedOver[] = [];
  #cancel: (() => void) | null = null;
  #isStopped = false;

  constructor(store: Remote<Store>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  move(sink: string, seq: number, note?: () => string | null): void {
    this.#moves.set(sink, { seq, note });
    this.#schedule();
  }

  /** The sink's cursor is removed. */
  forget(sink: string): void {
    this.#moves.delete(sink);
  }

  /** @param receivedAt milliseconds since the epoch */
  countErased(receivedAt: number): void {
    this.#erased.push(receivedAt);
    this.#schedule();
  }

  passedOver(one: PassedOver): void {
    this.#passedOver.push(one);
    this.#schedule();
  }

  async flush(): Promise<void> {
    const moves = [...this.#moves];
    const erased = this.#erased.splice(0);
    const passedOver = this.#passedOver.splice(0);
    if (erased.length > 0 || passedOver.length > 0)
      await this.#store.noteErased(erased, passedOver).catch((error: unknown) => {
        this.#erased.push(...erased);
        this.#passedOver.push(...passedOver);
        throw error;
      });
    if (moves.length === 0) return;
    await this.#store.cursors.move(
      moves.map(([sink, { seq, note }]) => (note === undefined ? [sink, seq] : [sink, seq, note()])),
    );
    for (const [sink, move] of moves) if (this.#moves.get(sink) === move) this.#moves.delete(sink);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#cancel ??= this.#clock.after(DELAY, () => {
      this.#cancel = null;
      // Tried again without waiting for the next move: a full journal gets none until these are written.
      this.flush().catch(() => this.#schedule());
    });
  }
}
