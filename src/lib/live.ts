/** A value that is replaced as a whole. Its users read it each time, or subscribe. */
export interface Live<T> {
  readonly value: T;
  /** @param listener called with each later value */
  subscribe(listener: (value: T) => void | Promise<void>): void;
}

/** A `Live` value with the method that replaces it. */
export class Cell<T> implements Live<T> {
  #value: T;
  readonly #listeners: Parameters<Live<T>['subscribe']>[0][] = [];

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  subscribe(listener: (value: T) => void | Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** Sets the value, then calls the listeners one after the other. Rejects when one rejects; the rest are not called then. */
  async replace(value: T): Promise<void> {
    this.#value = value;
    for (const listener of this.#listeners) await listener(value);
  }
}
