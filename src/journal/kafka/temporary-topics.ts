import { setTimeout as wait } from 'node:timers/promises';
import type { Admin } from '@platformatic/kafka';
import { messageOf, MillraceError } from '../../core/errors.ts';
import { lackOf } from '../../lib/installed.ts';

/** Topics and consumer groups that a demo makes for itself, beside whatever else the cluster has. */
export interface TemporaryTopics {
  /** Resolves once so many processes share the partitions. */
  untilShared(members: number, signal: AbortSignal): Promise<void>;
  /** Takes topics and groups away again. */
  remove(): Promise<void>;
  close(): Promise<void>;
}

/** Milliseconds for a broker to start, and for replicas to agree, on a busy machine. */
const PATIENCE = 60_000;
const LOOK_EVERY = 200;
const REQUEST_MS = 5000;
/** More than there are replicas, so that each has several. */
const PARTITIONS = 6;
/** As many as the cluster has by default. */
const REPLICAS = -1;

/**
 * Makes the topics that deploy/scaling.md asks for.
 * @param ended what the broker said last where it has ended; it may start meanwhile
 */
export async function makeTopics(
  brokers: readonly string[],
  name: string,
  ended: () => string | null,
  signal: AbortSignal,
): Promise<TemporaryTopics> {
  const lack = lackOf(['@platformatic/kafka']);
  if (lack !== null) throw new MillraceError('usage', `--fleet ${lack}`);
  const { Admin: Client } = await import('@platformatic/kafka');
  const admin = new Client({
    clientId: 'millrace-demo',
    bootstrapBrokers: [...brokers],
    connectTimeout: REQUEST_MS,
    requestTimeout: REQUEST_MS,
    retries: 0,
  });
  // One that fails twice would end the process: nobody listens then.
  admin.connections.on('connecting', ({ connection }) => connection.on('error', () => undefined));
  const eventually = async (what: string, look: () => Promise<boolean>, stop: AbortSignal): Promise<void> => {
    const end = performance.now() + PATIENCE;
    for (;;) {
      let reason = '';
      try {
        if (await look()) return;
      } catch (error) {
        reason = deepest(error);
      }
      const last = ended();
      if (stop.aborted) throw new MillraceError('interrupted', 'nothing is kept of an unfinished demo');
      if (last !== null) throw new MillraceError('usage', `the broker ended: ${last}`);
      if (performance.now() > end)
        throw new MillraceError(
          'usage',
          `--fleet: ${what} at ${brokers.join(', ')} failed for a minute: ${reason}`,
        );
      await wait(LOOK_EVERY);
    }
  };
  const names = [...topicsOf(name), ...setAsideOf(name)];
  const group = `${name}.archive`;
  const removeGroup = async (groupId: string): Promise<void> => {
    const found = (await admin.describeGroups({ groups: [groupId] })).get(groupId);
    if (found === undefined || found.state.toUpperCase() === 'DEAD') return;
    // Those that were killed belong to it until their session is over.
    await admin.removeMembersFromConsumerGroup({ groupId });
    await admin.deleteGroups({ groups: [groupId] });
  };
  try {
    await make(admin, name, eventually, signal);
  } catch (error) {
    await admin.close().catch(() => undefined);
    throw error;
  }
  return {
    untilShared: (members, stop) => {
      const look = async (): Promise<boolean> => {
        const found = (await admin.describeGroups({ groups: [group] })).get(group);
        // Brokers do not all write it alike.
        return found?.state.toUpperCase() === 'STABLE' && found.members.size === members;
      };
      return eventually(`sharing the group ${group}`, look, stop);
    },
    remove: async () => {
      await admin.deleteTopics({ topics: names });
      for (const each of [group, `${name}._window`]) await removeGroup(each);
    },
    close: () => admin.close().catch(() => undefined),
  };
}

type Eventually = (what: string, look: () => Promise<boolean>, stop: AbortSignal) => Promise<void>;

async function make(admin: Admin, name: string, eventually: Eventually, signal: AbortSignal): Promise<void> {
  const made = new Set<string>();
  const compacted = [{ name: 'cleanup.policy', value: 'compact' }];
  const makeAll = async (topics: readonly string[], partitions: number, configs: typeof compacted) => {
    for (const topic of topics) {
      if (made.has(topic)) continue;
      try {
        await admin.createTopics({ topics: [topic], partitions, replicas: REPLICAS, configs });
      } catch (error) {
        // Of a request whose answer was lost.
        if (!deepest(error).includes('already exists')) throw error;
      }
      made.add(topic);
    }
  };
  const look = async (): Promise<boolean> => {
    await makeAll(topicsOf(name), PARTITIONS, []);
    await makeAll(setAsideOf(name), 1, compacted);
    const topics = [...topicsOf(name), ...setAsideOf(name)];
    const { topics: found } = await admin.metadata({ topics, forceUpdate: true });
    return topics.every((topic) => found.get(topic)?.partitions.every(({ leader }) => leader >= 0));
  };
  await eventually('making topics', look, signal);
}

function topicsOf(name: string): string[] {
  return [`${name}.events`, `${name}.window`];
}

function setAsideOf(name: string): string[] {
  return [`${name}.quarantine`, `${name}.dead-letters`];
}

/** The package says what went wrong in the innermost of its errors. */
function deepest(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return deepest(error.errors.at(-1));
  if (error instanceof Error && error.cause !== undefined) return deepest(error.cause);
  return messageOf(error);
}
