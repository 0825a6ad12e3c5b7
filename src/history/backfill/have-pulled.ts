import { MillraceError } from '../../core/errors.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';
import type { User } from '../service/users.ts';
import { Checkpoint, type Triggered, type Unpulled, type Without } from './checkpoint.ts';
import { followPulls } from './follow.ts';
import type { WatchOptions } from './patience.ts';
import {
  connectionsOf,
  keyOf,
  partsOf,
  pullKeyOf,
  resourcesIn,
  usersLeft,
  type BackfillPlan,
  type Connection,
} from './plan.ts';
import { triggerPulls } from './trigger.ts';

/** Triggers the pulls of all connections of the plan and waits for their end; once, however often the run is resumed. */
export async function pullHistory(checkpoint: Checkpoint, watch: WatchOptions): Promise<void> {
  const { state } = checkpoint;
  const again = state.again && new Set(state.again);
  const all = connectionsOf(state.plan).filter((connection) => again?.has(keyOf(connection)) !== false);
  if (!state.checked)
    await checkpoint.noteWithout(await findUnconnected(watch.service, all, watch.signal), 'checked');
  const { without } = checkpoint.state;
  const connected = all.filter((connection) => without[keyOf(connection)] === undefined);
  const processed = await triggerPulls(connected, { ...watch, checkpoint });
  const ended = endedOf(checkpoint.state.triggered);
  const followed = connected.flatMap((connection) =>
    resourcesIn(state.plan).map((resource) => ({ ...connection, resource })),
  );
  await checkpoint.noteWithout(await followPulls(followed, { ...watch, processed, ended }), 'followed');
}

/** Marks of the pulls that had ended before the triggers, by pull. */
function endedOf(triggered: Readonly<Record<string, Triggered>>): ReadonlyMap<string, string> {
  const marks = Object.entries(triggered).flatMap(([provider, { ended }]) =>
    Object.entries(ended).map(([key, mark]) => {
      const [user = '', name = 'meal'] = key.split(' ');
      return [pullKeyOf({ user, provider, resource: { name } }), mark] as const;
    }),
  );
  return new Map(marks);
}

/** Up to so many users are read one by one; for more, the list of all users is read. */
const ASKED_ONE_BY_ONE = 50;
const PAGE = 500;

/** The connections that the service does not have; where it does not say it, a user counts as connected. */
async function findUnconnected(
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
    const key = keyOf(connection);
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

export interface PulledSummary {
  readonly users: number;
  readonly connections: number;
  readonly pulled: number;
  readonly failed: number;
  readonly not_connected: number;
  readonly not_pulled: number;
  /** Connections that a resumed run triggers again, `user provider`, and why. */
  readonly unpulled: readonly Unpulled[];
  /** Always empty. */
  readonly files: readonly string[];
}

/**
 * Triggers the pulls of all users and fetches nothing: once, before several runs each fetch a shard. (A bulk operation has no id:
 * runs that trigger at the same time could not distinguish theirs.)
 * @throws as `runBackfill`
 */
export async function runTrigger({
  plan,
  output,
  resume,
  ...watch
}: WatchOptions & {
  readonly plan: BackfillPlan;
  readonly output: string;
  readonly resume: boolean;
}): Promise<PulledSummary> {
  if (plan.providers.length === 0) throw new MillraceError('usage', '--trigger-only needs --provider');
  const loadedAt = new Date(watch.clock.now()).toISOString();
  const checkpoint = await Checkpoint.open(output, plan, { resume, loadedAt, triggers: true });
  if (!checkpoint.state.followed) await pullHistory(checkpoint, watch);
  const connections = connectionsOf(plan).length;
  const resources = resourcesIn(plan).length;
  const count = { failed: 0, not_connected: 0, not_pulled: 0 };
  // Without a connection, or a user, there is no pull of any resource.
  for (const [pull, { status }] of Object.entries(checkpoint.state.without))
    count[status] += partsOf(pull).resource === undefined ? resources : 1;
  const pulled = connections * resources - count.failed - count.not_connected - count.not_pulled;
  const { unpulled } = checkpoint;
  await checkpoint.finish(unpulled.length > 0);
  return { users: usersLeft(plan).length, connections, pulled, ...count, unpulled, files: [] };
}
