/** Runs tasks one after another, in order. A failed task does not stop the next. */
export class Serial {
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Tasks that are not settled. */
  get size(): number {
    return this.#waiting;
  }

  run<T>(task: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const result = this.#tail.then(task);
    const settle = (): void => {
      this.#waiting -= 1;
    };
    this.#tail = result.then(settle, settle);
    return result;
  }
}
