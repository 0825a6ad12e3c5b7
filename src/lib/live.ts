/** A value that is replaced as a whole. */
export class Cell<T> {
  #value: T;
  readonly #listeners: ((value: T) => void | Promise<void>)[] = [];

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** @param listener called with each later value */
  subscribe(listener: (value: T) => void | Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** Sets the value, then calls the listeners one after the other. Rejects when one rejects; the rest are not called then. */
  async replace(value: T): Promise<void> {
    this.#value = value;
    for (const listener of this.#listeners) await listener(value);
  }
}

/** For its users, who read it each time, or subscribe. */
export type Live<T> = Pick<Cell<T>, 'value' | 'subscribe'>;
