import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { newSecret } from '../../core/secrets.ts';
import { makeTopics, type TemporaryTopics } from '../../journal/kafka/temporary-topics.ts';
import { untilDelivered } from './app.ts';
import { INSTALL, startBroker, type Broker } from './broker.ts';
import { sendLoad, USERS } from './fleet-load.ts';
import { proveFleet, type FleetProof } from './fleet-proof.ts';
import { note, usageError, type Io } from '../io.ts';
import { withOperations } from '../operations.ts';
import { startReplica, type Replica } from './replica.ts';

export interface FleetCounts extends FleetProof {
  readonly ok: boolean;
  /** Events answered with 2xx. */
  readonly accepted: number;
  readonly unanswered: number;
  readonly repeated: number;
  readonly users: number;
  /** Folder with the archives and logs of the replicas. */
  readonly folder: string;
}

interface FleetOptions {
  readonly events: number;
  /** Folder of an installed Kafka. */
  readonly kafka: string | undefined;
  /** Of a cluster that runs, in place of it. */
  readonly brokers: readonly string[] | undefined;
}

/** Fewer are over before the kill is amid them. */
const LEAST = 100;

/**
 * Two replicas share a journal on Kafka, one of them is killed under load, and the files of both prove what came of it.
 * @throws MillraceError usage where there is no Kafka
 */
export async function runFleetDemo(io: Io, options: FleetOptions): Promise<FleetCounts> {
  if (options.events < LEAST)
    throw usageError(`--events ${options.events}: must be at least ${LEAST} with --fleet`);
  const home = options.kafka ?? io.env['KAFKA_HOME'] ?? '';
  if (options.brokers === undefined && home === '') throw usageError(INSTALL);
  const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-'));
  const broker = options.brokers === undefined ? await startBroker(home, folder, io.signal) : null;
  try {
    return await onBrokers(io, folder, { events: options.events, broker, brokers: options.brokers ?? [] });
  } finally {
    await broker?.stop();
  }
}

interface Around {
  readonly events: number;
  /** Its topics go with it. */
  readonly broker: Broker | null;
  readonly brokers: readonly string[];
}

async function onBrokers(io: Io, folder: string, { events, broker, brokers }: Around): Promise<FleetCounts> {
  const addresses = broker === null ? brokers : [broker.address];
  const name = `millrace-demo-${randomBytes(6).toString('hex')}`;
  const topics = await makeTopics(addresses, name, () => broker?.ended() ?? null, io.signal);
  note(io, `broker     ${addresses.join(', ')}, topics ${name}.*`);
  const running = new Set<Replica>();
  try {
    const secret = newSecret();
    const start = async (which: string): Promise<Replica> => {
      const replica = await startReplica(folder, which, { brokers: addresses, name }, secret, io);
      running.add(replica);
      note(io, `${which}  process ${replica.pid} at ${replica.url}`);
      return replica;
    };
    const pair = [await start('replica-1'), await start('replica-2')] as const;
    await topics.untilShared(pair.length, io.signal);
    return await killOne(io, folder, { pair, running, events, secret });
  } finally {
    await Promise.all(Array.from(running, (replica) => replica.end('SIGKILL')));
    await leave(io, topics, broker, name);
  }
}

interface Fleet {
  readonly pair: readonly [Replica, Replica];
  /** Who is still to be ended. */
  readonly running: Set<Replica>;
  readonly events: number;
  readonly secret: string;
}

async function killOne(
  io: Io,
  folder: string,
  { pair: [victim, other], running, events, secret }: Fleet,
): Promise<FleetCounts> {
  const kill = async (answered: number): Promise<void> => {
    note(io, `kill -9    replica-1, when ${answered} of ${events} events were answered`);
    await victim.end('SIGKILL');
    running.delete(victim);
  };
  const { sent, unanswered, repeated } = await sendLoad(
    [victim.url, other.url],
    { events, secret, signal: io.signal },
    kill,
  );
  note(io, `answered   ${sent.size} events; replica-2 takes over the partitions of replica-1`);
  await withOperations(other.loaded, (operations) => untilDelivered(operations, io.signal));
  const code = await other.end('SIGTERM');
  running.delete(other);
  const found = await proveFleet([victim.archive, other.archive], sent);
  const problems = code === 0 ? found.problems : [`replica-2 ended with ${code}`, ...found.problems];
  return {
    ...found,
    problems,
    ok: problems.length === 0,
    accepted: sent.size,
    unanswered,
    repeated,
    users: USERS,
    folder,
  };
}

/** Leaves nothing in a cluster that goes on. */
async function leave(io: Io, topics: TemporaryTopics, broker: Broker | null, name: string): Promise<void> {
  try {
    if (broker === null) await topics.remove();
  } catch (error) {
    note(io, `topics and groups ${name}.* stay: ${messageOf(error)}`);
  } finally {
    await topics.close();
  }
}

export function renderFleet(counts: FleetCounts): string {
  const { ok, accepted, unanswered, repeated, delivered, archived, twice, users, folder, problems } = counts;
  return [
    `accepted     ${accepted}   (answered with 2xx by one of two replicas)`,
    `unanswered   ${unanswered}   (tries; sent again to the other replica, under the same id)`,
    `repeated     ${repeated}   (answered ones, sent once more to the other replica)`,
    `delivered    ${delivered}   (${archived.join(' + ')} records, in the archives of both below ${folder})`,
    `twice        ${twice}   (under way at the kill; both times under the same idempotency key)`,
    ...problems.map((problem) => `problem      ${problem}`),
    ok
      ? `The files hold every accepted event byte for byte, ${twice === 0 ? 'once' : 'once but for those under way'}, and the events of each of ${users} users in order.`
      : 'The counts do not add up.',
  ].join('\n');
}
