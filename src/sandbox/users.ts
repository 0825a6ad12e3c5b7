import type { Timers } from './timers.ts';
import type { ResolvedSandbox } from './options.ts';
import { DAY_MS } from './made-up-health.ts';
import { Refusal } from './check.ts';
import { uuidOf, type Name } from './seeded.ts';

const GRACE_MS = 7 * DAY_MS;

export interface Connection {
  readonly provider: string;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** `active` → (delete) `deleted`, for seven days → (undo) `active`, or (time) erased: then it is no longer here. */
export interface User {
  readonly id: string;
  readonly teamId: string;
  readonly clientUserId: string | null;
  readonly createdOn: string;
  readonly connections: Connection[];
  /** Providers that were ever connected: their data stays without the connection. */
  readonly sources: string[];
  /** Ingestion bounds: days, both inclusive. */
  readonly bounds: { ingestion_start: string | null; ingestion_end: string | null };
  deletedAt: number | null;
  /** Set after the grace period: nothing of the user may be shown. */
  erased: boolean;
  /** Providers and resources whose history was pulled; with `data: after_pull` others have no data yet. */
  readonly pulled: Set<string>;
  readonly index: number;
}

/** Retrying exists since 9 May 2025; one user in ten is older. */
const OLD = '2025-01-15T08:00:00+00:00';
const NEW = '2025-06-02T08:00:00+00:00';

/** The users of all teams. */
export class Users {
  readonly #timers: Timers;
  readonly #seed: Name;
  readonly #byId = new Map<string, User>();
  /** Null for erased users. */
  readonly #byIndex: (User | null)[] = [];
  readonly #byClientId = new Map<string, User>();
  /** Keys that an undo gave to a second user. */
  readonly #shared = new Set<string>();
  readonly #onDeleted: ((user: User) => void)[] = [];
  readonly #onErased: ((user: User) => void)[] = [];

  /** Creates the seeded users in a team. */
  constructor(
    timers: Timers,
    teamId: string,
    { seed, users: count, providers, faults, throttles, unknownValues }: ResolvedSandbox,
  ) {
    const { unconnectedUsers: unconnected = 0 } = faults;
    const [first = '', ...others] = throttles.keys();
    this.#timers = timers;
    this.#seed = seed;
    for (let index = 0; index < count; index += 1) {
      const user = this.#make(teamId, `made-up-client-${index}`, isFromBefore(index) ? OLD : NEW);
      if (index >= count - unconnected) continue;
      for (const provider of providers ?? new Set([first, others[index % others.length] ?? first]))
        this.connect(user, provider, user.createdOn);
      if (unknownValues) this.connect(user, 'made_up_not_listed', user.createdOn);
    }
  }

  /** Adds a listener for deletions, called while the user is still connected. */
  onDeleted(listener: (user: User) => void): void {
    this.#onDeleted.push(listener);
  }

  /** Adds a listener for users whose data must be removed. */
  onErased(listener: (user: User) => void): void {
    this.#onErased.push(listener);
  }

  connect(user: User, provider: string, createdAt: string): void {
    user.connections.push({ provider, createdAt });
    if (!user.sources.includes(provider)) user.sources.push(provider);
  }

  /** @throws Refusal 400 with `user_id` and `created_on` of an existing user */
  create(teamId: string, clientUserId: string | null): User {
    const existing =
      clientUserId === null ? undefined : this.#byClientId.get(clientKey({ teamId, clientUserId }));
    if (existing !== undefined) {
      throw new Refusal(400, {
        error_type: 'INVALID_REQUEST',
        error_message: 'Client user id already exists.',
        user_id: existing.id,
        created_on: existing.createdOn,
      });
    }
    return this.#make(teamId, clientUserId, this.#timers.stamp());
  }

  /** An active user of the team. @throws Refusal 404 */
  get(teamId: string, id: string): User {
    const user = this.find(teamId, id);
    if (user === null) throw new Refusal(404, 'User not found');
    return user;
  }

  /** @throws Refusal 404 */
  resolve(teamId: string, clientUserId: string): User {
    const user = this.#byClientId.get(clientKey({ teamId, clientUserId }));
    if (user === undefined) throw new Refusal(404, 'User not found');
    return user;
  }

  find(teamId: string, id: string): User | null {
    const user = this.#byId.get(id);
    return user !== undefined && user.teamId === teamId && user.deletedAt === null ? user : null;
  }

  /** Active users, oldest first. */
  list(teamId: string): User[] {
    return [...this.#byId.values()].filter((user) => user.teamId === teamId && user.deletedAt === null);
  }

  /** Active users above an index, oldest first. */
  *after(teamId: string, index: number): Generator<User> {
    for (let next = index + 1; next < this.#byIndex.length; next += 1) {
      const user = this.#byIndex[next];
      if (user?.teamId === teamId && user.deletedAt === null) yield user;
    }
  }

  /** Starts the grace period: connections are removed at once, data at its end. */
  delete(user: User): void {
    const deletedAt = this.#timers.clock.now();
    for (const listener of this.#onDeleted) listener(user);
    user.deletedAt = deletedAt;
    user.connections.length = 0;
    this.#release(user);
    this.#timers.after(GRACE_MS, () => {
      if (user.deletedAt === deletedAt && !user.erased) this.#erase(user);
    });
  }

  /** Does not restore connections. @throws Refusal 404 after the grace period */
  undoDelete(teamId: string, which: { readonly [K in 'id' | 'clientUserId']: string | undefined }): void {
    const user = [...this.#byId.values()]
      .filter((one) => one.teamId === teamId && one.deletedAt !== null)
      .findLast((one) => one.id === which.id || one.clientUserId === (which.clientUserId ?? ''));
    if (user === undefined) throw new Refusal(404, 'No deleted user within its grace period');
    user.deletedAt = null;
    const key = clientKey(user);
    if (this.#byClientId.has(key)) this.#shared.add(key);
    this.#byClientId.set(key, user);
  }

  /** Lets another user have the client user id. */
  #release(user: User): void {
    const key = clientKey(user);
    const all = this.#shared.has(key) ? this.list(user.teamId) : [];
    const other = all.find((one) => clientKey(one) === key);
    if (other === undefined) this.#byClientId.delete(key);
    else this.#byClientId.set(key, other);
  }

  deleteTeam(teamId: string): void {
    for (const user of this.#byId.values()) {
      if (user.teamId !== teamId) continue;
      this.#erase(user);
      this.#byClientId.delete(clientKey(user));
    }
  }

  #erase(user: User): void {
    user.erased = true;
    user.pulled.clear();
    this.#byId.delete(user.id);
    this.#byIndex[user.index] = null;
    for (const listener of this.#onErased) listener(user);
  }

  #make(teamId: string, clientUserId: string | null, createdOn: string): User {
    const index = this.#byIndex.length;
    const id = uuidOf(this.#seed, 'user', index);
    const nothing = {
      connections: [],
      sources: [],
      bounds: { ingestion_start: null, ingestion_end: null },
      deletedAt: null,
      erased: false,
      pulled: new Set<string>(),
    };
    const user: User = { id, teamId, clientUserId, createdOn, ...nothing, index };
    this.#byIndex.push(user);
    this.#byId.set(id, user);
    if (clientUserId !== null) this.#byClientId.set(clientKey(user), user);
    return user;
  }
}

/** Whether the connections of a seeded user are older than retrying. */
export function isFromBefore(index: number): boolean {
  return index % 10 === 9;
}

export function userJson(user: User): object {
  return {
    user_id: user.id,
    team_id: user.teamId,
    client_user_id: user.clientUserId,
    created_on: user.createdOn,
    ...Object.fromEntries(Object.entries(user.bounds).filter(([, day]) => day !== null)),
    connected_sources: user.connections.map(({ provider, createdAt }) => ({
      source: namedProvider(provider),
      provider: namedProvider(provider),
      created_on: createdAt,
    })),
  };
}

export function namedProvider(provider: string) {
  return { slug: provider, name: provider, logo: 'https://made-up.invalid/logo.png' };
}

/** The person of a user, for laboratories and insurers. */
export function personOf({ index }: Pick<User, 'index'>) {
  return {
    first_name: 'Made',
    last_name: `Up ${index}`,
    email: `made-up-${index}@example.invalid`,
    phone_number: '+15550100000',
    gender: 'other',
    dob: '1990-01-01',
    address: {
      first_line: `${index} Made-up Street`,
      second_line: null,
      country: 'US',
      zip: '00000',
      zip_code: '00000',
      state: 'ZZ',
      city: 'Madeup',
    },
  };
}

/** One user in ten has no insurance. */
export function hasInsurance({ index }: Pick<User, 'index'>): boolean {
  return index % 10 !== 7;
}

function clientKey({ teamId, clientUserId }: Pick<User, 'teamId' | 'clientUserId'>): string {
  return `${teamId}|${clientUserId}`;
}
