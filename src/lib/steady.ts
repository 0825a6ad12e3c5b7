/**
 * A value that may come and go, such as an error. One that comes back within `ms` of its end is shown for `ms` after each end from
 * then on, so that two looks at it agree. No timer.
 */
export class Steady<T> {
  readonly #clock: { monotonic(): number };
  readonly #ms: number;
  #value: T | null = null;
  /** Monotonic milliseconds; null while the value lasts. */
  #endedAt: number | null = Number.NEGATIVE_INFINITY;
  #cameBack = false;

  constructor(clock: { monotonic(): number }, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  /** Null when it is over. */
  get now(): T | null {
    return this.#endedAt === null ? this.#value : null;
  }

  get shown(): T | null {
    return this.#endedAt === null || (this.#cameBack && this.#isRecent(this.#endedAt)) ? this.#value : null;
  }

  begin(value: T): void {
    if (this.#endedAt !== null) this.#cameBack = this.#isRecent(this.#endedAt);
    this.#endedAt = null;
    this.#value = value;
  }

  end(): void {
    this.#endedAt ??= this.#clock.monotonic();
  }

  #isRecent(at: number): boolean {
    return this.#clock.monotonic() - at < this.#ms;
  }
}
