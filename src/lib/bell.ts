/** Wakes whoever waits for something to have changed. */
export class Bell {
  #next = Promise.withResolvers<void>();

  ring(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  /** Resolves when the condition holds, which is looked at each time it rings. @throws the signal's reason */
  async until(condition: () => boolean, signal: AbortSignal): Promise<void> {
    while (!condition()) {
      signal.throwIfAborted();
      const { promise } = this.#next;
      const stop = (): void => this.ring();
      signal.addEventListener('abort', stop, { once: true });
      await promise;
      signal.removeEventListener('abort', stop);
    }
  }
}
