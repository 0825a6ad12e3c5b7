import type { Dispatcher } from 'undici';
import type { Config } from '../config/config.ts';
import { CATALOGUE, MillraceError, messageOf, type ErrorCode } from '../core/errors.ts';
import type { Erasures } from '../core/erasure.ts';
import type { JournalAccount, Selection } from '../core/journal.ts';
import type { Operations } from '../core/operations.ts';
import { fromRouteRecordJson, type RouteRecordJson } from '../core/route-record.ts';
import { ownerFolder, readOwner, isLocal } from '../journal/owner.ts';
import { cutLines } from '../lib/lines.ts';
import { bracketed, callable } from '../lib/listen.ts';

const TIMEOUT_MS = 30_000;

/** The admin API of the receiver that runs on this machine. */
export class AdminClient {
  /** Base URL. */
  readonly url: string;
  readonly #token: string | null;

  private constructor(url: string, token: string | null) {
    this.url = url;
    this.#token = token;
  }

  /**
   * Finds the receiver by owner.json beside the journal; null when there is none, or it has no admin API. It may have died.
   * Prefers the receiver's own token: another process that took its port must not learn admin.token.
   */
  static of(config: Config): AdminClient | null {
    const owner = readOwner(ownerFolder(config));
    const token = owner?.token ?? config.admin.token;
    if (owner !== null && owner.admin !== null) return new AdminClient(owner.admin, token);
    // Without a local journal there may be no owner.json; the config has the address.
    if (isLocal(config) || !config.admin.enabled) return null;
    return AdminClient.atAddress(config);
  }

  /** At the address of the config; where that takes any free port, at the one of owner.json. */
  static atAddress(config: Config): AdminClient {
    const { host, port, token } = config.admin;
    const noted = port === 0 ? readOwner(ownerFolder(config))?.admin : null;
    return new AdminClient(noted ?? callable(`http://${bracketed(host)}:${port}`), token);
  }

  /** @throws MillraceError receiver_unreachable when no receiver is found */
  static running(config: Config): AdminClient {
    const client = AdminClient.of(config);
    if (client !== null) return client;
    throw new MillraceError('receiver_unreachable', NO_RECEIVER);
  }

  /** Asks with node:http, which loads faster than undici. */
  isListening(): Promise<boolean> {
    const { get } = process.getBuiltinModule('node:http');
    return new Promise((resolve) => {
      const asked = get(`${this.url}/livez`, { agent: false, timeout: 5000 }, (answer) => {
        answer.resume();
        resolve(answer.statusCode === 200);
      });
      asked.on('timeout', () => asked.destroy());
      asked.on('error', () => resolve(false));
    });
  }

  /**
   * @param path below `/api`
   * @param patience milliseconds until the answer begins; 0 waits until `signal`
   * @throws MillraceError receiver_unreachable, or the receiver's own error; the reason of `signal`
   */
  async ask<T>(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
    patience = TIMEOUT_MS,
    signal?: AbortSignal,
  ): Promise<T> {
    const url = `${this.url}/api${path}`;
    const how = { method, headersTimeout: patience, ...(signal === undefined ? {} : { signal }) };
    try {
      return (await (await this.#answer(url, how, body)).json()) as T;
    } catch (error) {
      throw signal?.aborted === true ? signal.reason : unreachable(url, error);
    }
  }

  /**
   * Posts, and yields each line of an endless answer; null for an empty line, which is a sign of life.
   * @throws as `ask`, also when the connection ends
   */
  async *lines<T>(path: string, body: object, signal: AbortSignal): AsyncGenerator<T | null> {
    const url = `${this.url}/api${path}`;
    try {
      const answer = await this.#answer(url, { method: 'POST', headersTimeout: TIMEOUT_MS, signal }, body);
      for await (const lines of cutLines(answer as AsyncIterable<Buffer>))
        for (const { bytes } of lines)
          yield bytes === null || bytes.length === 0 ? null : (JSON.parse(bytes.toString('utf8')) as T);
      throw new Error('the receiver closed the connection');
    } catch (error) {
      throw unreachable(url, error);
    }
  }

  /** @throws MillraceError the receiver's error */
  async #answer(
    url: string,
    how: Pick<Dispatcher.RequestOptions, 'method' | 'headersTimeout' | 'signal'>,
    body?: object,
  ): Promise<Dispatcher.ResponseData['body']> {
    // Loaded late: most commands never ask.
    const { request } = await import('undici');
    const answer = await request(url, {
      ...how,
      headers: {
        ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      bodyTimeout: TIMEOUT_MS,
    });
    if (answer.statusCode === 200) return answer.body;
    throw answerOf(url, answer.statusCode, await answer.body.json());
  }

  operations(): Operations {
    const list = <T>(path: string, selection: Selection, bodies: boolean): Promise<T> => {
      const query = new URLSearchParams(bodies ? { bodies: 'true' } : {});
      for (const [key, value] of Object.entries(selection)) query.set(key, String(value));
      return this.ask('GET', `${path}?${query.toString()}`);
    };
    const drop = async (path: string, selection: Selection): Promise<number> =>
      (await this.ask<{ dropped: number }>('POST', path, selection)).dropped;
    return {
      status: () => this.ask('GET', '/status'),
      listEvents: (selection) => list('/events', selection, true),
      listHeads: (after) => this.ask('GET', `/heads?after=${after}`),
      account: async (since, until) => {
        const account = await this.ask<Omit<JournalAccount, 'routes'> & { readonly routes: RouteRecordJson }>(
          'GET',
          `/account?since=${since}&until=${until}`,
        );
        return { ...account, routes: fromRouteRecordJson(account.routes) };
      },
      listQuarantine: (selection, bodies) => list('/quarantine', selection, bodies),
      retryQuarantine: (selection) => this.ask('POST', '/quarantine/retry', selection),
      dropQuarantine: (selection) => drop('/quarantine/drop', selection),
      listDeadLetters: (selection, bodies) => list('/dead-letters', selection, bodies),
      retryDeadLetters: (selection) => this.ask('POST', '/dead-letters/retry', selection),
      dropDeadLetters: (selection) => drop('/dead-letters/drop', selection),
      listEntries: (kind, selection) => list(`/${kind}/entries`, selection, false),
      schema: () => this.ask('GET', '/schema'),
      routes: async () => fromRouteRecordJson(await this.ask('GET', '/routes')),
      dropSink: (sink) => this.ask('POST', '/sinks/drop', { sink }),
    };
  }

  /** @param signal ends the wait for a run, not the run */
  erasures(signal: AbortSignal): Erasures {
    return {
      request: (subject, now) => this.ask('POST', '/erasures', { ...subject, now }),
      cancel: (subject) => this.ask('POST', '/erasures/cancel', subject),
      list: () => this.ask('GET', '/erasures'),
      // Answers when the erasures are done.
      run: () => this.ask('POST', '/erasures/run', {}, 0, signal),
      progress: () => this.ask('GET', '/erasures/progress', undefined, TIMEOUT_MS, signal),
    };
  }
}

const NO_RECEIVER =
  'none runs with this config, or it has no admin listener (admin.enabled). Start one with `millrace serve`, or name its ' +
  'config with --config';

function unreachable(url: string, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  return new MillraceError('receiver_unreachable', `${url}: ${messageOf(error)}`, { cause: error });
}

function answerOf(url: string, status: number, answer: unknown): MillraceError {
  const { code, detail = `status ${status}` } = Object(answer) as { code?: string; detail?: string };
  if (code === 'usage') return new MillraceError(code, detail);
  const known =
    code !== undefined && /^(erasure_|audit_|journal_unknown$)/.test(code) && Object.hasOwn(CATALOGUE, code);
  return new MillraceError(known ? (code as ErrorCode) : 'receiver_unreachable', `${url}: ${detail}`);
}
