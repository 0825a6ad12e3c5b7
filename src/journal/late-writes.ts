import type { Clock } from '../core/clock.ts';
import type { Remote } from '../lib/remote.ts';
import type { PassedOver } from './erased-alone.ts';
import type { Store } from './store.ts';

/** Milliseconds that what may be late waits for more. */
const DELAY = 200;

/**
 * What may be written a little late: a cursor that is behind costs repeated deliveries after a crash, never a loss. Moves
 * of cursors, and events of erased users that are not counted yet, or were passed over for a sink.
 */
export class LateWrites {
  readonly #store: Remote<Store>;
  readonly #clock: Clock;
  readonly #moves = new Map<
    string,
    { readonly seq: number; readonly note?: (() => string | null) | undefined }
  >();
  #erased: number[] = [];
  #passedOver: PassedOver[] = [];
  #cancel: (() => void) | null = null;
  #stopped = false;

  constructor(store: Remote<Store>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** @param note asked when it is written */
  move(sink: string, seq: number, note?: () => string | null): void {
    this.#moves.set(sink, { seq, note });
    this.#schedule();
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
    this.#stopped = true;
    this.#cancel?.();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancel ??= this.#clock.after(DELAY, () => {
      this.#cancel = null;
      // On a full disk the move is kept in memory and tried again, and not only with the next one: a journal that is
      // full gets no next one until the moves it has are known to the writer.
      this.flush().catch(() => this.#schedule());
    });
  }
}
