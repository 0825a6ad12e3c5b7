import type { LoadedConfig } from '../config/config.ts';
import type { Activity } from '../core/operations.ts';
import { AdminClient } from './admin-client.ts';

/** Milliseconds between two updates. */
const EVERY_MS = 1000;
const TIMEOUT_MS = 2000;

type Progress = Partial<Pick<Activity, 'done' | 'total' | 'state' | 'detail'>>;

/** Sends the progress of a command to the running receiver, which shows it in its console. Never fails the command. */
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

  /** Sends at most one update a second. */
  update(progress: Progress): void {
    this.#activity = { ...this.#activity, ...progress };
    if (performance.now() < this.#next) return;
    this.#next = performance.now() + EVERY_MS;
    this.#last = this.#send();
  }

  /** Sends the final state. */
  async end(progress: Progress & Pick<Activity, 'state'>): Promise<void> {
    await this.#last;
    this.#activity = { ...this.#activity, ...progress };
    await this.#send();
  }

  async #send(): Promise<void> {
    try {
      await AdminClient.of(this.#loaded.config)?.ask('POST', '/activities', this.#activity, TIMEOUT_MS);
    } catch {
      // No receiver runs, or it does not answer.
    }
  }
}
