import type { CallOptions, ReadOptions } from './options.ts';
import { text, uuid, wholeNumber } from './inputs.ts';
import { listFrom, objectFrom, type Open, type Unknown } from './shape.ts';
import { malformed, type Call, type Transport } from './transport.ts';

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
  readonly total?: number;
}

export interface UserQuery {
  readonly offset?: number;
  /** 1–500. Default: the service's. */
  readonly limit?: number;
}

/** Latest insurance of a user. Which fields are always there is not documented. */
export interface Insurance extends Unknown {
  readonly payor_code?: string;
  readonly member_id?: string;
  readonly group_id?: string;
  readonly relationship?: Open<'Self' | 'Spouse' | 'Other'>;
  readonly insured?: Unknown & {
    /** `YYYY-MM-DD`. */
    readonly dob?: string;
    readonly address?: Unknown & { readonly second_line?: string | null };
  };
}

/** Users: create, list, delete with a grace period of 7 days, undo. */
export class Users {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * @throws ServiceError `user_exists`, whose `existing` names the user that has the client user id already. An attempt
   * that is repeated after a lost connection can meet the user it made itself.
   */
  create(clientUserId: string, fields: Unknown = {}, { signal }: CallOptions = {}): Promise<User> {
    const json = { ...fields, client_user_id: text('clientUserId', clientUserId) };
    const call: Call = { method: 'POST', path: 'createUser', json, idempotent: true, signal };
    return objectFrom<User>(this.#transport, call);
  }

  async list({ offset, limit }: UserQuery = {}, { signal }: CallOptions = {}): Promise<UserPage> {
    const query = {
      offset: offset === undefined ? undefined : wholeNumber('offset', offset, 0, Number.MAX_SAFE_INTEGER),
      limit: limit === undefined ? undefined : wholeNumber('limit', limit, 1, 500),
    };
    const call: Call = { method: 'GET', path: 'listUsers', query, idempotent: true, signal };
    return listFrom<UserPage>(this.#transport, call, 'users');
  }

  /** Every user, page after page. Users that come or go meanwhile can be seen twice or not at all. */
  async *all(
    { pageSize = 100 }: { readonly pageSize?: number } = {},
    options: CallOptions = {},
  ): AsyncGenerator<User> {
    for (let offset = 0; ;) {
      const { users, total } = await this.list({ offset, limit: pageSize }, options);
      yield* users;
      offset += users.length;
      if (users.length === 0 || (total === undefined ? users.length < pageSize : offset >= total)) return;
    }
  }

  /** One user. */
  async get(user: string, { signal }: CallOptions = {}): Promise<User> {
    const parameters = { user_id: uuid('user', user) };
    return objectFrom<User>(this.#transport, {
      method: 'GET',
      path: 'user',
      parameters,
      idempotent: true,
      signal,
    });
  }

  /** Deregisters every provider connection at once; the data is erased after 7 days. */
  async delete(user: string, { signal }: CallOptions = {}): Promise<{ readonly success: boolean }> {
    const parameters = { user_id: uuid('user', user) };
    const call: Call = { method: 'DELETE', path: 'deleteUser', parameters, idempotent: true, signal };
    return readSuccess(this.#transport, call);
  }

  /** Within the grace period. Provider connections are not restored. */
  async undoDeletion(
    user: { readonly userId: string } | { readonly clientUserId: string },
    { signal }: CallOptions = {},
  ): Promise<{ readonly success: boolean }> {
    const query =
      'userId' in user
        ? { user_id: uuid('userId', user.userId) }
        : { client_user_id: text('clientUserId', user.clientUserId) };
    const call: Call = { method: 'POST', path: 'undoDeletion', query, idempotent: true, signal };
    return readSuccess(this.#transport, call);
  }

  async latestInsurance(user: string, { signal, onText }: ReadOptions = {}): Promise<Insurance> {
    const parameters = { user_id: uuid('user', user) };
    const call: Call = {
      method: 'GET',
      path: 'latestInsurance',
      parameters,
      idempotent: true,
      signal,
      onText,
    };
    return objectFrom<Insurance>(this.#transport, call);
  }
}

async function readSuccess(transport: Transport, call: Call): Promise<{ readonly success: boolean }> {
  const answer = await objectFrom<Unknown>(transport, call);
  if (typeof answer['success'] !== 'boolean') {
    throw malformed(transport.operation(call), 'the answer has no success', null);
  }
  return { ...answer, success: answer['success'] };
}
