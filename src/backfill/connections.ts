import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import type { User } from '../service/users.ts';
import type { Without } from './checkpoint.ts';

/** One user with one provider. */
export interface Connection {
  readonly user: string;
  readonly provider: string;
}

/** Key of one connection in what is kept about them. */
export function connectionKey({ user, provider }: Connection): string {
  return `${user} ${provider}`;
}

/** Above so many, the list of all users is read instead of one user after another. */
const ASKED_ONE_BY_ONE = 50;
const PAGE = 500;

/**
 * Asks the service which of these are not connected: to trigger their pulls would be in vain. A user of whom the service
 * does not say it counts as connected.
 */
export async function findUnconnected(
  service: ServiceClient,
  connections: readonly Connection[],
  signal: AbortSignal,
): Promise<Record<string, Without>> {
  const wanted = new Set(connections.map(({ user }) => user));
  const sources = new Map<string, ReadonlySet<string> | null>();
  for await (const user of usersOf(service, wanted, signal)) {
    const id = user.user_id.toLowerCase();
    if (wanted.has(id)) sources.set(id, sourcesOf(user));
    if (sources.size === wanted.size) break;
  }
  const without: Record<string, Without> = {};
  for (const connection of connections) {
    const connected = sources.get(connection.user);
    const key = connectionKey(connection);
    if (connected === undefined) without[key] = { status: 'failed', reason: 'the service has no such user' };
    else if (connected?.has(connection.provider) === false)
      without[key] = { status: 'not_connected', reason: `no connection to ${connection.provider}` };
  }
  return without;
}

async function* usersOf(
  service: ServiceClient,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
): AsyncGenerator<User> {
  if (wanted.size > ASKED_ONE_BY_ONE) {
    yield* service.users.all({ pageSize: PAGE }, { signal });
    return;
  }
  for (const user of wanted) {
    try {
      yield await service.users.get(user, { signal });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'not_found') throw error;
    }
  }
}

function sourcesOf({ connected_sources: sources }: User): ReadonlySet<string> | null {
  if (!Array.isArray(sources)) return null;
  return new Set(sources.flatMap(({ source }) => source?.slug ?? []));
}
