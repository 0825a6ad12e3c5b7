import PQueue from 'p-queue';
import { Agent, request } from 'undici';
import { messageOf } from '../core/errors.ts';
import { parseRetryAfter } from '../lib/retry-after.ts';
import { signatureHeaders, type Endpoint, type Endpoints } from './endpoints.ts';
import type { Timers } from './timers.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Waits before each attempt: at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h. */
export const SCHEDULE = [
  0,
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  10 * HOUR,
] as const;

/** An endpoint that fails for so long is disabled. */
const DISABLED_AFTER = 5 * 24 * HOUR;

/** Real time, as the receiver is real. */
const ANSWER_WITHIN = 15 * SECOND;

/** Most attempts in flight. */
const AT_ONCE = 64;

/** An event for an endpoint; every attempt has the same id. */
export interface Message {
  readonly id: string;
  readonly type: string;
  readonly body: Buffer;
}

interface Attempt {
  readonly message: Message;
  readonly endpoint: Endpoint;
  /** HTTP status; null without an answer. */
  readonly status: number | null;
  readonly problem: string | null;
  /** Whether it was the last attempt and failed. */
  readonly exhausted: boolean;
}

interface SenderOptions {
  readonly timers: Timers;
  readonly endpoints: Endpoints;
  /** The clock of signatures: receivers compare it with their own. */
  readonly signingNow: () => number;
}

/** Delivers messages at least once, in about their order. Only 2xx within 15 s is success. */
export class WebhookSender {
  readonly #options: SenderOptions;
  readonly #agent = new Agent({ connections: AT_ONCE, connect: { timeout: ANSWER_WITHIN } });
  readonly #queue = new PQueue({ concurrency: AT_ONCE });
  readonly #listeners: ((attempt: Attempt) => void)[] = [];
  readonly #stopping = new AbortController();

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** @param number of the attempt, from 1 */
  send(endpoint: Endpoint, message: Message, number = 1): void {
    if (this.#stopping.signal.aborted) return;
    void this.#queue.add(() => this.#attempt(endpoint, message, number));
  }

  onAttempt(listener: (attempt: Attempt) => void): void {
    this.#listeners.push(listener);
  }

  /** Resolves when no attempt is in flight or due; later retries may wait. */
  idle(): Promise<void> {
    return this.#queue.onIdle();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#queue.clear();
    await this.#queue.onIdle();
    await this.#agent.destroy();
  }

  async #attempt(endpoint: Endpoint, message: Message, number: number): Promise<void> {
    const { endpoints, timers } = this.#options;
    if (endpoint.disabled || !endpoints.has(endpoint)) return;
    const { status, problem, retryAfterMs } = await this.#post(endpoint, message);
    if (this.#stopping.signal.aborted) return;
    const ok = status !== null && status >= 200 && status < 300;
    const at = timers.clock.now();
    endpoint.failingSince = ok ? null : (endpoint.failingSince ?? at);
    if (at - (endpoint.failingSince ?? at) >= DISABLED_AFTER) endpoint.disabled = true;
    const delay = ok ? undefined : SCHEDULE[number];
    if (delay !== undefined)
      timers.after(Math.max(delay, retryAfterMs), () => this.send(endpoint, message, number + 1));
    const exhausted = !ok && delay === undefined;
    for (const listener of this.#listeners) listener({ message, endpoint, status, problem, exhausted });
  }

  async #post(
    endpoint: Endpoint,
    { id, body }: Message,
  ): Promise<{ status: number | null; retryAfterMs: number; problem: string | null }> {
    try {
      const signed = signatureHeaders(endpoint, id, this.#options.signingNow(), body);
      const response = await request(endpoint.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...endpoint.headers, ...signed },
        body,
        dispatcher: this.#agent,
        signal: AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ANSWER_WITHIN)]),
      });
      await response.body.dump();
      const { statusCode: status, headers } = response;
      const header = status === 429 || status === 503 ? String(headers['retry-after'] ?? '') : '';
      // A date is in real time.
      const retryAfterMs = parseRetryAfter(header, this.#options.signingNow()) ?? 0;
      return { status, retryAfterMs, problem: null };
    } catch (error) {
      return { status: null, retryAfterMs: 0, problem: messageOf(error) };
    }
  }
}
