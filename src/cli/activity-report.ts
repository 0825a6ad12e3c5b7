import type { LoadedConfig } from '../config/config.ts';
import type { Activity } from '../core/operations.ts';
import { AdminClient } from './admin-client.ts';

/** Milliseconds between two words to the receiver. */
const EVERY = 1000;
const TIMEOUT = 2000;

type News = Partial<Pick<Activity, 'done' | 'total' | 'state' | 'detail'>>;

/**
 * Tells a running receiver how far a command is, for its console. Advice only: without a receiver, or when it does not
 * answer, the command continues as if nothing were.
 */
export class ActivityReport {
  readonly #loaded: LoadedConfig;
  #activity: Activity;
  #next = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(loaded: LoadedConfig, fixed: Pick<Activity, 'kind' | 'id' | 'title' | 'unit'>) {
    const now = Date.now();
    this.#loaded = loaded;
    const begun = { done: 0, total: null, startedAt: now, updatedAt: now, detail: null };
    this.#activity = { state: 'running', ...begun, ...fixed };
  }

  /** Cheap to call often: a word a second goes out. */
  update(news: News): void {
    this.#activity = { ...this.#activity, ...news };
    if (performance.now() < this.#next) return;
    this.#next = performance.now() + EVERY;
    this.#last = this.#send();
  }

  /** The last word; what it does not say is as it was said last. Resolves when it is out. */
  async end(news: News & Pick<Activity, 'state'>): Promise<void> {
    await this.#last;
    this.#activity = { ...this.#activity, ...news };
    await this.#send();
  }

  async #send(): Promise<void> {
    try {
      await AdminClient.of(this.#loaded.config)?.ask('POST', '/activities', this.#activity, TIMEOUT);
    } catch {
      // The receiver has ended, or has never been there.
    }
  }
}
