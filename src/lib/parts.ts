export type Stop = (signal: AbortSignal) => Promise<void>;

/** What a part has made for those after it, and what stops it, which may flush until its signal aborts. */
export interface Started<T> {
  readonly made: T;
  /** Left out where there is nothing to stop. */
  readonly stop?: Stop;
}

/** The parts of a system, started one after the other; the last one stops first. */
export class Parts {
  readonly #onUnclean: (error: unknown, part: string) => void;
  readonly #running: Stop[] = [];
  #stopping: Promise<void> | null = null;

  /** @param onUnclean told when parts could not be stopped either, of the part that could not start */
  constructor(onUnclean: (error: unknown, part: string) => void) {
    this.#onUnclean = onUnclean;
  }

  /** @param start leaves nothing running when it rejects; then the parts before it are stopped again */
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

  /** Stops them once, however often it is called. */
  readonly stop: Stop = (signal) => (this.#stopping ??= this.#stopAll(signal));

  async #stopAll(signal: AbortSignal): Promise<void> {
    for (const stop of this.#running.toReversed()) await stop(signal);
  }
}
