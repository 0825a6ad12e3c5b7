import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { finishedTask, pullMeals } from '../../backfill/pull-meals.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { ServiceClient } from '../../service/client.ts';
import { ServiceError } from '../../service/errors.ts';
import { completionKey, readCompletion, type Completion } from './completion.ts';
import type { FollowUpOptions } from './config.ts';

/** The resource that has tables; completions of others are passed over. */
const RESOURCE = 'meal';

/**
 * Does what a `historical.data.meal.created` event calls for: fetches exactly that range of that user and provider into
 * tables, once however often the completion is repeated, also after a restart. A pull's folder is there whole or not at
 * all, and its `done.json` is the memory of it.
 */
export class FollowUpSink implements Sink {
  readonly limits = {
    batchCount: 8,
    batchBytes: 1024 * 1024,
    eventBytes: Number.POSITIVE_INFINITY,
    inFlight: 2,
    order: 'none',
    batchBy: 'mixed',
  } as const;

  readonly #folder: string;
  readonly #service: ServiceClient;
  readonly #context: SinkContext;
  /** Pulls under way, by key: a repetition waits for the first. */
  readonly #running = new Map<string, Promise<SendResult>>();

  constructor({ path, ...service }: FollowUpOptions, context: SinkContext) {
    this.#folder = resolve(path);
    this.#context = context;
    // The dispatcher owns the retrying, so that a service in trouble shows in `status`.
    this.#service = new ServiceClient({ ...service, retries: { attempts: 1 } });
  }

  /** @throws MillraceError folder_unwritable */
  async open(): Promise<void> {
    try {
      await mkdir(this.#folder, { recursive: true });
    } catch (error) {
      throw new MillraceError('folder_unwritable', `${this.#folder}: ${messageOf(error)}`, { cause: error });
    }
  }

  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    return Promise.all(batch.map(({ event }) => this.#follow(event, signal)));
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  async #follow(event: Delivery['event'], signal: AbortSignal): Promise<SendResult> {
    const completion = readCompletion(event);
    if (completion === null) return DELIVERED;
    if (typeof completion === 'string')
      return { status: 'refused', code: 'not_a_completion', reason: completion };
    if (completion.resource !== RESOURCE) return DELIVERED;
    const key = completionKey(completion);
    let pull = this.#running.get(key);
    if (pull === undefined) {
      pull = this.#pull(completion, join(this.#folder, key), signal).finally(() => this.#running.delete(key));
      this.#running.set(key, pull);
    }
    return pull;
  }

  async #pull(completion: Completion, folder: string, signal: AbortSignal): Promise<SendResult> {
    try {
      if ((await finishedTask(folder)) !== null) return DELIVERED;
      const { meals, rejects } = await pullMeals(this.#service, completion, folder, signal);
      this.#context.log.info({ sink: this.#context.name, folder, meals, rejects }, 'follow-up pull done');
      return DELIVERED;
    } catch (error) {
      return failureOf(error);
    }
  }
}

function failureOf(error: unknown): SendResult {
  const reason = messageOf(error);
  if (error instanceof MillraceError) return { status: 'refused', code: 'not_a_completion', reason };
  if (!(error instanceof ServiceError)) return { status: 'retry', reason };
  const wait = error.retryAfterMs === null ? {} : { delayMs: error.retryAfterMs };
  // A key that is refused, or a service that is down, concerns every pull.
  const whole = error.status === 401 || error.status === 403 || error.status === 429 || error.status === null;
  if (whole || error.retryable) return { status: 'retry', reason, sink: whole, ...wait };
  return { status: 'refused', code: 'service_refused', reason };
}
