import type { Readable } from 'node:stream';
import type { CallOptions, ReadOptions } from './options.ts';
import { dateRange, text, uuid, wholeNumber } from './inputs.ts';
import { Group, saysMore, type Unknown } from './shape.ts';
import type { Call } from './transport.ts';
import { WholeList } from './whole-list.ts';

export interface User extends Unknown {
  readonly user_id: string;
  /** The providers that are connected now. */
  readonly connected_sources?: readonly { readonly source?: { readonly slug?: string } | null }[] | null;
}

interface UserPage extends Unknown {
  readonly users: readonly User[];
  readonly total?: number | null;
  /** Number of users of a full page. */
  readonly limit?: number;
}

interface UserQuery {
  readonly offset?: number;
  /** 1–500. Default: the service's. */
  readonly limit?: number;
}

/** A bare end day is read as 23:59:59, a bare start day as 00:00:00. */
interface DataRange {
  /** `YYYY-MM-DD` or an ISO 8601 date-time. */
  readonly start?: string | undefined;
  readonly end?: string | undefined;
  /** Provider identifier; without it, all. */
  readonly provider?: string | undefined;
  /** Of the page; without it, the first. */
  readonly cursor?: string | undefined;
}

/** Users and their data. */
export class Users extends Group {
  async list({ offset, limit }: UserQuery = {}, options: ReadOptions = {}): Promise<UserPage> {
    const query = { offset: wholeNumber('offset', offset, 0), limit: wholeNumber('limit', limit, 1, 500) };
    return this.readList<UserPage>({ method: 'GET', path: 'listUsers', query, ...options }, 'users');
  }

  /**
   * Every user once, page after page; a list that changes while it is read is read again.
   * @throws ServiceError answer_malformed at the end, when a user may be missing
   */
  async *all(
    { pageSize = 100 }: { readonly pageSize?: number } = {},
    options: CallOptions = {},
  ): AsyncGenerator<User> {
    const list = new WholeList<User>(pageSize, async ({ size, offset }) => {
      const page = await this.list({ offset, limit: size }, options);
      const { users, total, limit } = page;
      const keys = users.map((user) => user.user_id);
      return { items: users, keys, total, full: limit, more: saysMore(page) };
    });
    for await (const { items } of list.pages()) yield* items;
    if (list.problem === null) return;
    const call = { method: 'GET', path: 'listUsers' } as const;
    throw this.transport.malformed(call, `${list.problem}; run it again, or name the users`);
  }

  async get(user: string, options: ReadOptions = {}): Promise<User> {
    return this.readObject<User>({ method: 'GET', path: 'user', parameters: parametersOf(user), ...options });
  }

  /** Deregisters every provider connection at once; the data is deleted after 7 days. */
  delete(user: string): Promise<Success> {
    return this.#success({ method: 'DELETE', path: 'deleteUser', parameters: parametersOf(user) });
  }

  /** Within these 7 days. Provider connections are not restored. */
  undoDeletion(user: { readonly userId: string } | { readonly clientUserId: string }): Promise<Success> {
    const query =
      'userId' in user
        ? { user_id: uuid('userId', user.userId) }
        : { client_user_id: text('clientUserId', user.clientUserId) };
    return this.#success({ method: 'POST', path: 'undoDeletion', query, idempotent: true });
  }

  /** Which fields are always there is not documented. */
  async latestInsurance(user: string, options: ReadOptions = {}): Promise<Unknown> {
    const parameters = parametersOf(user);
    return this.readObject<Unknown>({ method: 'GET', path: 'latestInsurance', parameters, ...options });
  }

  /**
   * A document of a user's data, or a page of one, as it arrives; it can be very large. A failure after the first byte ends the stream
   * with a ServiceError; the caller discards what came.
   */
  async data(
    path: Call['path'],
    user: string,
    { start, end, provider, cursor }: DataRange,
    options: CallOptions = {},
  ): Promise<Readable> {
    if (start !== undefined) dateRange(start, end);
    const parameters = parametersOf(user);
    const query = { start_date: start, end_date: end, provider: text('provider', provider), cursor };
    return this.transport.stream({ method: 'GET', path, parameters, query, ...options });
  }

  async #success(call: Call): Promise<Success> {
    const answer = await this.readObject<Success>(call);
    if (typeof answer.success !== 'boolean')
      throw this.transport.malformed(call, 'the answer has no success');
    return answer;
  }
}

type Success = Unknown & { readonly success: boolean };

function parametersOf(user: string): { readonly user_id: string } {
  return { user_id: uuid('user', user) };
}
