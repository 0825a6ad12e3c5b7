/** A value that is replaced as a whole, for those who hold on to it: they read it each time, or are told. */
export interface Live<T> {
  readonly value: T;
  /** @param listener told of each later value, for what has to be done when it changes */
  subscribe(listener: (value: T) => void | Promise<void>): void;
}

/** For who replaces it. */
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

  /** Resolves when all listeners are done, one after the other; rejects as soon as one does. The value is then the new one. */
  async replace(value: T): Promise<void> {
    this.#value = value;
    for (const listener of this.#listeners) await listener(value);
  }
}
