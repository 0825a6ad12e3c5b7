import type { CallOptions, ReadOptions } from './options.ts';
import { text, uuid, wholeNumber } from './inputs.ts';
import { PageCount, type PageStep } from './page-count.ts';
import { Group, type Unknown } from './shape.ts';
import { malformed, type Call } from './transport.ts';

/** Times that a list is read which changes meanwhile. */
const PASSES = 3;

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
   * Every user, page after page, once. Who comes or goes meanwhile moves others to pages that were read before. So each page
   * begins with the last user of the one before, and a list that moved, or has fewer users than the service says, is read again.
   * @throws ServiceError answer_malformed at the end, when the list moved each time, or has fewer than the service says
   */
  async *all(
    { pageSize = 100 }: { readonly pageSize?: number } = {},
    options: CallOptions = {},
  ): AsyncGenerator<User> {
    const given = new Set<string>();
    for (let pass = 1; ; pass += 1) {
      const pages = new PageCount();
      const listed = new Set<string>();
      let moved: string | null = null;
      let [offset, first, last]: [number, string?, User?] = [0];
      let overlaps = true;
      for (let step: PageStep = 'more'; step === 'more';) {
        const query = { offset, limit: pageSize };
        const page = await pages.next(() => this.list(query, options));
        if (page === null) break;
        const { users: found, total, limit = pageSize } = page;
        // A service that knows only where whole pages begin: nothing tells there that the list moved but its total.
        if (last !== undefined && (found.length === 0 || found[0]?.user_id === first)) {
          [offset, last, overlaps] = [pages.seen, undefined, false];
          continue;
        }
        const isNext = last !== undefined && found[0]?.user_id === last.user_id;
        const users = isNext ? found.slice(1) : found;
        if (last !== undefined && !listed.has(found[0]?.user_id ?? ''))
          moved = 'the list moved while it was read';
        step = pages.add(users, total, isNext ? limit - 1 : limit);
        if (step === 'repeated') break;
        // A page of one user has no room for another's.
        last = overlaps && found.length > 1 ? found.at(-1) : undefined;
        first = found[0]?.user_id;
        offset += found.length - (last === undefined ? 0 : 1);
        for (const user of users) {
          listed.add(user.user_id);
          if (given.has(user.user_id)) continue;
          given.add(user.user_id);
          yield user;
        }
      }
      if (moved === null && pages.problem === null && listed.size >= pages.most) return;
      if (pass < PASSES) continue;
      const operation = this.transport.operation({ method: 'GET', path: 'listUsers' });
      const reason =
        pages.problem ??
        moved ??
        `the service says that there are ${pages.most}, and listed ${listed.size} different ones`;
      throw malformed(operation, `${reason}; run it again, or name the users`, null);
    }
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
