import { request } from 'undici';
import { setTimeout as wait } from 'node:timers/promises';

interface Watched {
  readonly adminUrl: string;
  readonly authorization: Record<string, string>;
}

/** Pairs of an open console and a Prometheus. */
export class Watchers {
  readonly #watchers: readonly Watcher[];

  /** @param count spread evenly over the second that each of them waits */
  constructor(receiver: Watched, count: number) {
    this.#watchers = Array.from({ length: count }, (_, at) => new Watcher(receiver, (at / count) * 1000));
  }

  /** @returns milliseconds from each question to the end of its answer */
  async stop(): Promise<number[]> {
    await Promise.all(this.#watchers.map((watcher) => watcher.stop()));
    return this.#watchers.flatMap(({ times }) => times);
  }
}

/** What an open console and a Prometheus ask of a receiver: both once a second, as the page does it. */
class Watcher {
  readonly #admin: string;
  readonly #headers: Record<string, string>;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  readonly times: number[] = [];
  #since = 0;
  #after = 0;

  constructor({ adminUrl, authorization }: Watched, delay: number) {
    this.#admin = adminUrl;
    this.#headers = authorization;
    // Half a second apart, as two that know nothing of each other would be.
    this.#running = Promise.all([
      this.#everySecond(delay, () => this.#console()),
      this.#everySecond(delay + 500, () => this.#metrics()),
    ]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #everySecond(delay: number, ask: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    try {
      await wait(delay, undefined, { signal });
      for (;;) {
        const started = performance.now();
        await ask();
        this.times.push(performance.now() - started);
        await wait(1000, undefined, { signal });
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #console(): Promise<void> {
    const { body, statusCode } = await request(
      `${this.#admin}/api/console?since=${this.#since}&after=${this.#after}`,
      { headers: this.#headers },
    );
    const state = (await body.json()) as { history: { at: number }[]; recent: { n: number }[] };
    if (statusCode !== 200) throw new Error(`the console was answered ${statusCode}`);
    this.#since = state.history.at(-1)?.at ?? this.#since;
    this.#after = state.recent[0]?.n ?? this.#after;
  }

  async #metrics(): Promise<void> {
    const { body, statusCode } = await request(`${this.#admin}/metrics`);
    await body.dump();
    if (statusCode !== 200) throw new Error(`/metrics was answered ${statusCode}`);
  }
}
