import { setTimeout as wait } from 'node:timers/promises';
import type { LoadedConfig } from '../../config/config.ts';
import { MillraceError } from '../../core/errors.ts';
import { NO_ROUTES, type RouteRecord } from '../../core/route-record.ts';
import type { AskStore } from '../../replay/read-store.ts';
import type { TopicLog } from '../../replay/read-topic.ts';
import type { OpenOperations, openTopics } from '../operations.ts';

/** A receiver that restarts is away for a moment: tries, and milliseconds between them. */
const TRIES = { count: 30, every: 1000 };

/** The journal as a replay reads it: opened when it is first asked, through the receiver if one runs. */
export class ReplayStore {
  readonly #loaded: LoadedConfig;
  readonly #signal: AbortSignal;
  #open: OpenOperations | null = null;
  #topics: Awaited<ReturnType<typeof openTopics>> | null = null;

  constructor(loaded: LoadedConfig, signal: AbortSignal) {
    this.#loaded = loaded;
    this.#signal = signal;
  }

  readonly ask: AskStore = async (work) => {
    for (let tries = 1; ; tries += 1) {
      try {
        // Loads the journal, which a replay of archives never needs.
        this.#open ??= await (await import('../operations.ts')).openOperations(this.#loaded);
        return await work(this.#open.operations);
      } catch (error) {
        await this.close();
        if (!isPassing(error) || tries === TRIES.count) throw error;
        await wait(TRIES.every, undefined, { signal: this.#signal });
      }
    }
  };

  /** None where there is no journal, or none that remembers. What reads only archives must not hold it any longer. */
  async routes(): Promise<RouteRecord> {
    const { config } = this.#loaded;
    if (config.acknowledge === 'delivered' || config.journal.type === 'kafka') return NO_ROUTES;
    try {
      return await this.ask((operations) => operations.routes());
    } catch (error) {
      if (error instanceof MillraceError && error.code === 'journal_missing') return NO_ROUTES;
      throw error;
    } finally {
      await this.close();
    }
  }

  /** The journal of a fleet, which is read here whoever runs; null where it is not one. */
  async topicLog(): Promise<TopicLog | null> {
    const { config } = this.#loaded;
    if (config.journal.type !== 'kafka') return null;
    this.#topics ??= await (await import('../operations.ts')).openTopics(config);
    return this.#topics.sharedLog();
  }

  async close(): Promise<void> {
    const topics = this.#topics;
    this.#topics = null;
    await topics?.close();
    const open = this.#open;
    this.#open = null;
    await open?.close();
  }
}

function isPassing(error: unknown): boolean {
  return (
    error instanceof MillraceError &&
    (error.code === 'receiver_unreachable' || error.code === 'journal_in_use')
  );
}
