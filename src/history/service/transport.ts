import { Readable } from 'node:stream';
import { Pool, type Dispatcher } from 'undici';
import type { Clock } from '../../core/clock.ts';
import { RateWindow } from '../../lib/rate-window.ts';
import { ServiceError, ServiceInputError } from './errors.ts';
import { resolveOptions, type ResolvedOptions, type ServiceOptions } from './options.ts';
import { errorOfAnswer, errorOfFailure, retryDelay } from './outcome.ts';
import { fillPath, type PathName } from './paths.ts';
import { wait } from './wait.ts';

type QueryValue = string | number | readonly string[] | null | undefined;

/** A request to the service. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The name of an operation, or a path template. */
  readonly path: PathName | `/${string}`;
  readonly parameters?: Readonly<Record<string, string>>;
  /** Undefined and null values are left out; a list repeats its name. */
  readonly query?: Readonly<Record<string, QueryValue>>;
  /** Sent as JSON. */
  readonly json?: object;
  /** Default team. */
  readonly auth?: 'team' | 'management';
  /** True when it may be repeated although it may have been done. Default: true, except for POST. */
  readonly idempotent?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called with the text of an answer that is JSON. */
  readonly onText?: ((text: string) => void) | undefined;
}

type Response = Dispatcher.ResponseData;

const CONNECT_WITHIN_MS = 10_000;
/** Longest time between two pieces of a body. */
const PIECE_WITHIN_MS = 60_000;

/** Sends calls, with keys, pacing, time-outs and retries. An answer counts only when it is whole. */
export class Transport {
  readonly options: ResolvedOptions;
  readonly #pool: Pool;
  readonly #pace: RequestPace;

  constructor(options: ServiceOptions) {
    this.options = resolveOptions(options);
    const { base, connections, perSecond, clock } = this.options;
    this.#pool = new Pool(base.origin, { connections, connect: { timeout: CONNECT_WITHIN_MS } });
    this.#pace = new RequestPace(perSecond, clock);
  }

  /** @returns a 2xx answer, body read. @throws ServiceError; the signal's reason when it aborts */
  answer(call: Call): Promise<{ readonly status: number; readonly text: string }> {
    return this.#attempts(call, async ({ statusCode, body }) => {
      return { status: statusCode, text: await body.text() };
    });
  }

  /**
   * The parsed body of a 2xx answer.
   * @throws ServiceError, `answer_malformed` when it is not JSON; the signal's reason when it aborts
   */
  async json(call: Call): Promise<unknown> {
    const operation = this.operation(call);
    const { text, parsed } = await this.#attempts(call, async ({ statusCode, body }) => {
      const written = await body.text();
      return { text: written, parsed: parse(operation, statusCode, written) };
    });
    call.onText?.(text);
    return parsed;
  }

  /**
   * The body of a 2xx answer as it arrives. Calls are retried until the body begins; a later failure ends the stream with a
   * ServiceError, and the caller starts over with a new call.
   */
  stream(call: Call): Promise<Readable> {
    const operation = this.operation(call);
    return this.#attempts(call, async ({ body }, signal) => {
      const pieces = async function* (): AsyncGenerator<Buffer> {
        try {
          for await (const piece of body) yield piece as Buffer;
        } catch (error) {
          signal?.throwIfAborted();
          throw errorOfFailure(operation, error);
        } finally {
          body.destroy();
        }
      };
      return Readable.from(pieces(), { objectMode: false });
    });
  }

  /** Method and path template, which names a call without ids. */
  operation(call: Call): string {
    return `${call.method} ${this.#pathOf(call)}`;
  }

  #pathOf({ path }: Call): string {
    const paths: Readonly<Record<string, string>> = this.options.paths;
    return paths[path] ?? path;
  }

  /** The error for a 2xx answer that is not what the operation should return. */
  malformed(call: Call, detail: string, status: number | null = null): ServiceError {
    const operation = this.operation(call);
    return new ServiceError({ code: 'answer_malformed', operation, status, detail, retryable: false });
  }

  /** Waits for calls in flight, then closes the connections. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  async #attempts<T>(
    call: Call,
    read: (response: Response, signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    const { clock, attempts, random, onRetry } = this.options;
    const operation = this.operation(call);
    const signals = [call.signal, this.options.signal].filter((signal) => signal !== undefined);
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    for (let attempt = 1; ; attempt += 1) {
      await this.#pace.take(signal);
      try {
        return await read(await this.#send(call, signal), signal);
      } catch (cause) {
        signal?.throwIfAborted();
        if (cause instanceof ServiceInputError) throw cause;
        const error = errorOfFailure(operation, cause);
        const idempotent = call.idempotent ?? call.method !== 'POST';
        // Only idempotent operations are retried when they may have been done.
        const isLast = attempt >= attempts || (error.maybeApplied && !idempotent);
        const delayMs = isLast ? null : retryDelay(error, attempt, random);
        if (error.status === 429 && error.retryAfterMs !== null && delayMs !== null) {
          this.#pace.pause(error.retryAfterMs);
        }
        if (delayMs === null) throw error;
        onRetry?.({ operation, attempt, delayMs, code: error.code, reason: error.message });
        await wait(clock, delayMs, signal);
      }
    }
  }

  async #send(call: Call, signal: AbortSignal | undefined): Promise<Response> {
    const { base, headersTimeout, clock } = this.options;
    const response = await this.#pool.request({
      origin: base.origin,
      path: base.path + fillPath(this.#pathOf(call), call.parameters ?? {}) + queryOf(call.query ?? {}),
      method: call.method,
      headers: {
        accept: 'application/json',
        ...(call.json === undefined ? {} : { 'content-type': 'application/json' }),
        ...this.#key(call.auth ?? 'team'),
      },
      body: call.json === undefined ? null : JSON.stringify(call.json),
      headersTimeout,
      bodyTimeout: PIECE_WITHIN_MS,
      signal: signal ?? null,
    });
    const { statusCode: status, headers } = response;
    if (status === 206) {
      await response.body.dump();
      throw this.malformed(call, 'the answer is a part, and all of it was asked for', status);
    }
    if (status >= 200 && status < 300) return response;
    const answer = { status, headers, text: await response.body.text() };
    throw errorOfAnswer(this.operation(call), answer, clock.now());
  }

  #key(auth: 'team' | 'management'): Record<string, string> {
    const { apiKey, apiKeyHeader, managementKey, managementKeyHeader } = this.options;
    const [option, header, value] =
      auth === 'team'
        ? ['apiKey', apiKeyHeader, apiKey]
        : ['managementKey', managementKeyHeader, managementKey];
    if (value === null) throw new ServiceInputError(option, 'is needed for this operation');
    return { [header]: value };
  }
}

/** Paces requests, in the order in which they come. Without a limit only `pause` holds them back. */
class RequestPace {
  readonly #clock: Clock;
  readonly #window: RateWindow | null;
  #pausedUntil = 0;
  #line: Promise<void> = Promise.resolve();

  constructor(perSecond: number | undefined, clock: Clock) {
    this.#clock = clock;
    this.#window = perSecond === undefined ? null : new RateWindow(perSecond);
  }

  /** Resolves when a request may be sent. @throws the signal's reason when it aborts */
  async take(signal?: AbortSignal): Promise<void> {
    const turn = this.#line.then(() => this.#takeInTurn(signal));
    this.#line = turn.catch(() => undefined);
    await turn;
  }

  /** Holds back every request, as after an answer of 429. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.monotonic() + ms);
  }

  async #takeInTurn(signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const now = this.#clock.monotonic();
      const ms = Math.max(this.#pausedUntil - now, Math.ceil(this.#window?.wait(now) ?? 0));
      if (ms <= 0) break;
      await wait(this.#clock, ms, signal);
    }
    signal?.throwIfAborted();
    this.#window?.take(this.#clock.monotonic());
  }
}

function parse(operation: string, status: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unreadable(operation, status, text, cause);
  }
}

const HTML = /^\s*</;

/** @throws ServiceError for HTML, which a proxy has sent instead of the answer */
export function refuseHtml(operation: string, status: number, text: string): void {
  if (HTML.test(text)) throw unreadable(operation, status, text);
}

/** The error for an answer that is not JSON. HTML and cut answers come from proxies, and are retryable. */
function unreadable(operation: string, status: number, text: string, cause?: unknown): ServiceError {
  const [isHtml, isCut] = [HTML.test(text), /^\s*[[{]/.test(text)];
  const what = isHtml ? 'a page, and not JSON' : 'not JSON';
  const detail = isCut ? 'the answer breaks off, or is broken JSON' : `the answer is ${what}`;
  const retryable = isHtml || isCut;
  const fields = { code: 'answer_malformed', operation, status, detail } as const;
  return new ServiceError({ ...fields, retryable, maybeApplied: retryable }, { cause });
}

function queryOf(query: Readonly<Record<string, QueryValue>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value ?? []].flat()) search.append(name, String(one));
  }
  return search.size === 0 ? '' : `?${search.toString()}`;
}
