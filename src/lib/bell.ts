/** Wakes waiting code, which then checks its condition again. */
export class Bell {
  #next = Promise.withResolvers<void>();

  ring(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }

  /** Resolves when the condition holds; it is checked at once and at each ring. @throws the signal's reason */
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
