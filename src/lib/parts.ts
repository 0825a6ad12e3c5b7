export type Stop = (signal: AbortSignal) => Promise<void>;

/** A started part: what later parts need of it, and how to stop it. `stop` may flush until its signal aborts. */
export interface Started<T> {
  readonly made: T;
  /** Absent when there is nothing to stop. */
  readonly stop?: Stop;
}

/** The parts of a system, started one after the other and stopped in reverse order. */
export class Parts {
  readonly #onUnclean: (error: unknown, part: string) => void;
  readonly #running: Stop[] = [];
  #stopping: Promise<void> | null = null;

  /** @param onUnclean called when a part did not start, and the parts before it could not be stopped */
  constructor(onUnclean: (error: unknown, part: string) => void) {
    this.#onUnclean = onUnclean;
  }

  /** @param start leaves nothing running when it rejects; then the parts before it are stopped */
  async start<T>(name: string, start: () => Started<T> | Promise<Started<T>>): Promise<T> {
    try {
      const { made, stop } = await start();
      if (stop !== undefined) this.#running.push(stop);
      return made;
    } catch (error) {
      await this.stop(AbortSignal.abort()).catch((late: unknown) => this.#onUnclean(late, name));
      throw error;
    }
  }

  /** Stops the parts once, however often it is called. */
  readonly stop: Stop = (signal) => (this.#stopping ??= this.#stopAll(signal));

  async #stopAll(signal: AbortSignal): Promise<void> {
    for (const stop of this.#running.toReversed()) await stop(signal);
  }
}
