import type { Clock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { ServiceClient } from '../service/client.ts';
import { Checkpoint, type Without } from './checkpoint.ts';
import { connectionKey, findUnconnected } from './connections.ts';
import { followPulls, type FollowProgress } from './follow.ts';
import { connectionsOf, usersLeft, type BackfillPlan } from './plan.ts';
import { triggerPulls } from './trigger.ts';

export type PullProgress =
  | {
      readonly phase: 'trigger';
      readonly provider: string;
      readonly pending: number;
      readonly processed: number;
    }
  | ({ readonly phase: 'follow' } & FollowProgress);

interface Having {
  readonly service: ServiceClient;
  readonly plan: BackfillPlan;
  readonly pollMs: number;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

/** Has the service pull the history of all connections of the plan, and waits until it has; once, however often it is resumed. */
export async function haveHistoryPulled(
  options: Having,
  checkpoint: Checkpoint,
  clock: Clock,
  onProgress: (progress: PullProgress) => void,
): Promise<void> {
  const { plan, service, signal, pollMs, patienceMs } = options;
  const again = checkpoint.state.again && new Set(checkpoint.state.again);
  const all = connectionsOf(plan).filter((connection) => again?.has(connectionKey(connection)) !== false);
  if (!checkpoint.state.checked) await checkpoint.checked(await findUnconnected(service, all, signal));
  const { without } = checkpoint.state;
  const connected = all.filter((connection) => without[connectionKey(connection)] === undefined);
  const shared = { service, clock, signal, pollMs, patienceMs };
  const processed = await triggerPulls(connected, {
    ...shared,
    checkpoint,
    onProgress: (provider, { pending, processed: done }) =>
      onProgress({ phase: 'trigger', provider, pending, processed: done }),
  });
  const unpulled = await followPulls(connected, {
    ...shared,
    processed,
    ended: endedOf(checkpoint),
    onProgress: (progress) => onProgress({ phase: 'follow', ...progress }),
  });
  await checkpoint.followed(unpulled);
}

function endedOf({ state }: Checkpoint): ReadonlyMap<string, string> {
  const marks = Object.entries(state.triggered).flatMap(([provider, { ended }]) =>
    Object.entries(ended).map(([user, mark]) => [connectionKey({ user, provider }), mark] as const),
  );
  return new Map(marks);
}

export interface PulledSummary {
  readonly users: number;
  readonly connections: number;
  readonly pulled: number;
  readonly failed: number;
  readonly not_connected: number;
  readonly not_pulled: number;
  /** Connections that a run which is resumed triggers again, `user provider`, and why. */
  readonly unpulled: readonly (Without & { readonly connection: string })[];
  /** None is made. */
  readonly files: readonly string[];
}

/**
 * Has the history of all users pulled, and fetches nothing: once, before several runs each fetch a shard of them. (A bulk
 * operation has no id, so runs that trigger side by side could not tell theirs from the others'.)
 * @throws as `runBackfill`
 */
export async function runTrigger(
  options: Having & {
    readonly output: string;
    readonly resume: boolean;
    readonly clock: Clock;
    readonly onProgress: (progress: PullProgress) => void;
  },
): Promise<PulledSummary> {
  const { plan, output, resume, clock, onProgress } = options;
  if (plan.providers.length === 0) throw new MillraceError('usage', '--trigger-only needs --provider');
  const loadedAt = new Date(clock.now()).toISOString();
  const checkpoint = await Checkpoint.open(output, plan, { resume, loadedAt, triggers: true });
  if (!checkpoint.state.followed) await haveHistoryPulled(options, checkpoint, clock, onProgress);
  const connections = connectionsOf(plan).length;
  const count = { failed: 0, not_connected: 0, not_pulled: 0 };
  for (const { status } of Object.values(checkpoint.state.without)) count[status] += 1;
  const pulled = connections - count.failed - count.not_connected - count.not_pulled;
  const unpulled = checkpoint.withoutPull.map(([connection, why]) => ({ connection, ...why }));
  if (unpulled.length > 0) await checkpoint.written();
  else await checkpoint.remove();
  return { users: usersLeft(plan).length, connections, pulled, ...count, unpulled, files: [] };
}
