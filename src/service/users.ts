import type { CallOptions, ReadOptions } from './options.ts';
import { text, uuid, wholeNumber } from './inputs.ts';
import { Group, saysMore, type Unknown } from './shape.ts';
import { malformed, type Call } from './transport.ts';
import { WholeList } from './whole-list.ts';

export interface User extends Unknown {
  readonly user_id: string;
  /** Free text chosen by the team. */
  readonly client_user_id?: string | null;
  /** ISO 8601. */
  readonly created_on?: string;
  /** The providers that are connected now. */
  readonly connected_sources?: readonly { readonly source?: { readonly slug?: string } | null }[] | null;
}

export interface UserPage extends Unknown {
  readonly users: readonly User[];
  readonly total?: number | null;
  /** Users of a full page. */
  readonly limit?: number;
}

export interface UserQuery {
  readonly offset?: number;
  /** 1–500. Default: the service's. */
  readonly limit?: number;
}

/** Users: create, list, delete with a grace period of 7 days, undo. */
export class Users extends Group {
  /**
   * @throws ServiceError `user_exists`, whose `existing` names the user that has the client user id already. An attempt
   * that is repeated after a lost connection can meet the user it made itself.
   */
  create(clientUserId: string, fields: Unknown = {}, options: CallOptions = {}): Promise<User> {
    const json = { ...fields, client_user_id: text('clientUserId', clientUserId) };
    return this.readObject<User>({ method: 'POST', path: 'createUser', json, idempotent: true, ...options });
  }

  async list({ offset, limit }: UserQuery = {}, options: ReadOptions = {}): Promise<UserPage> {
    const query = { offset: wholeNumber('offset', offset, 0), limit: wholeNumber('limit', limit, 1, 500) };
    return this.readList<UserPage>({ method: 'GET', path: 'listUsers', query, ...options }, 'users');
  }

  /**
   * Every user, page after page, once; a list that changes meanwhile is read again.
   * @throws ServiceError answer_malformed at the end, when somebody may have been passed over
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
    const operation = this.transport.operation({ method: 'GET', path: 'listUsers' });
    throw malformed(operation, `${list.problem}; run it again, or name the users`, null);
  }

  /** One user. */
  async get(user: string, options: ReadOptions = {}): Promise<User> {
    return this.readObject<User>({ method: 'GET', path: 'user', parameters: parametersOf(user), ...options });
  }

  /** Deregisters every provider connection at once; the data is erased after 7 days. */
  async delete(user: string, options: CallOptions = {}): Promise<Success> {
    const parameters = parametersOf(user);
    return this.#success({ method: 'DELETE', path: 'deleteUser', parameters, ...options });
  }

  /** Within the grace period. Provider connections are not restored. */
  async undoDeletion(
    user: { readonly userId: string } | { readonly clientUserId: string },
    options: CallOptions = {},
  ): Promise<Success> {
    const query =
      'userId' in user
        ? { user_id: uuid('userId', user.userId) }
        : { client_user_id: text('clientUserId', user.clientUserId) };
    return this.#success({ method: 'POST', path: 'undoDeletion', query, idempotent: true, ...options });
  }

  /** Which fields are always there is not documented. */
  async latestInsurance(user: string, options: ReadOptions = {}): Promise<Unknown> {
    const parameters = parametersOf(user);
    return this.readObject<Unknown>({ method: 'GET', path: 'latestInsurance', parameters, ...options });
  }

  async #success(call: Call): Promise<Success> {
    const answer = await this.readObject<Success>(call);
    if (typeof answer.success !== 'boolean')
      throw malformed(this.transport.operation(call), 'the answer has no success', null);
    return answer;
  }
}

type Success = Unknown & { readonly success: boolean };

function parametersOf(user: string): { readonly user_id: string } {
  return { user_id: uuid('user', user) };
}
