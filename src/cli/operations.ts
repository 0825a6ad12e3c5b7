import { createValidator } from '../receive/validate/envelope.ts';
import { Audit, auditedOperations } from '../observe/admin/audit.ts';
import {
  type AdministeredJournal,
  createOperations,
  type OperationsOptions,
} from '../observe/admin/operations.ts';
import type { Config, LoadedConfig } from '../config/config.ts';
import { archiveKeyOf } from '../config/folders.ts';
import { resolveModules } from '../config/modules.ts';
import { systemClock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { Operations } from '../core/operations.ts';
import { countWaiting, dropSink } from '../deliver/waiting.ts';
import { parseTarget } from '../core/route.ts';
import { SILENT } from '../core/sink.ts';
import { ErasedUsers } from '../privacy/erase/erased-users.ts';
import { openKafkaJournal } from '../journal/kafka/open.ts';
import type { KafkaJournal } from '../journal/kafka/store.ts';
import { ownerFolder } from '../journal/owner.ts';
import { SqliteJournal, type SqliteJournalOptions } from '../journal/sqlite-journal.ts';
import { droppedBy } from '../privacy/proof/dropped.ts';
import { openProof } from '../privacy/proof/open.ts';
import { AcceptedRoutes } from '../deliver/routes/accepted.ts';
import { compileRoutes } from '../deliver/routes/table.ts';
import { restoreMemory } from '../observe/schema/saved-memory.ts';
import { reportOf } from '../observe/schema/report.ts';
import { MEMORY_KEY } from '../observe/schema/watch.ts';
import { AdminClient } from './admin-client.ts';
import { asOwner } from './as-owner.ts';
import { closing, usageError } from './io.ts';

/** Operations on a journal, until they are closed. */
export interface OpenOperations {
  readonly operations: Operations;
  close(): Promise<void>;
}

/**
 * Runs `work` on the journal of the config: through the running receiver, else on the journal itself, as its owner.
 * @throws MillraceError journal_missing, or journal_in_use when its holder has no admin API
 */
export async function withOperations<T>(
  loaded: LoadedConfig,
  work: (operations: Operations) => Promise<T>,
): Promise<T> {
  await using open = closing(await openOperations(loaded));
  return await work(open.operations);
}

/** The same for long work. Without a receiver no other process can use the journal until `close`. */
export async function openOperations(loaded: LoadedConfig): Promise<OpenOperations> {
  const { config } = asOwner(loaded);
  // Without a config that can be used, only the receiver knows its sinks and routes.
  if (loaded.isSalvaged) return remote(AdminClient.running(config));
  if (config.acknowledge === 'delivered') {
    const client = AdminClient.of(config);
    if (client !== null) return remote(client);
    throw usageError('with acknowledge: delivered this needs the admin listener (admin.enabled)');
  }
  if (config.journal.type === 'kafka') return openKafka(loaded);
  let journal: SqliteJournal;
  try {
    journal = await openJournal(config);
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'journal_in_use') throw error;
    const client = AdminClient.of(config);
    if (client !== null) return remote(client);
    throw new MillraceError(
      'journal_in_use',
      `${error.detail}, which has no admin listener to ask (admin.enabled)`,
    );
  }
  const operations = operationsOn(journal, loaded, {
    countWaiting: async (sink, after) =>
      countWaiting({ journal, sink, after, routes: new AcceptedRoutes(await journal.routes()) }),
    dropSink: async (sink) => {
      if (config.sinks[sink] !== undefined)
        throw usageError(`sinks.${sink} is still in the config: it delivers the events that wait for it`);
      const users = ErasedUsers.open(config.erasure.path);
      return dropSink(journal, sink, (event) => users.has(event), Date.now());
    },
    schema: {
      report: async () => {
        const text = await journal.checkpoints.load(MEMORY_KEY);
        return reportOf(restoreMemory(text), config.schema.enabled !== false);
      },
    },
  });
  const audit = new Audit(config.journal.path);
  return { operations: auditedOperations(operations, audit, 'command'), close: () => journal.close() };
}

/** On a journal in Kafka: through the receiver on this machine, else on the topics. */
async function openKafka(loaded: LoadedConfig): Promise<OpenOperations> {
  const { config } = loaded;
  const client = AdminClient.of(config);
  if (client !== null && (await client.isListening())) return remote(client);
  const journal = await openTopics(config);
  const audit = new Audit(ownerFolder(config));
  const operations = auditedOperations(operationsOn(journal, loaded), audit, 'command');
  return { operations, close: () => journal.close() };
}

function operationsOn(
  journal: AdministeredJournal,
  loaded: LoadedConfig,
  more: Pick<OperationsOptions, 'countWaiting' | 'dropSink' | 'schema'> = {
    dropSink: () => Promise.reject(usageError('sink drop needs journal.type: local')),
  },
): Operations {
  const { config } = loaded;
  const archiveOf = async (sink: string): Promise<string | null> => {
    const { descriptions } = await resolveModules(loaded);
    return archiveKeyOf(descriptions.get(`sinks.${sink}`)?.archive);
  };
  return createOperations({
    journal,
    validate: createValidator(config.envelope),
    pid: null,
    sinks: () => [],
    hasSink: (name) => config.sinks[name] !== undefined,
    noteDropped: droppedBy(openProof(config), archiveOf),
    ...more,
  });
}

/** Operations for a reconciliation. The topics of a journal in Kafka are read directly, also beside a receiver. */
export async function withAccount<T>(
  loaded: LoadedConfig,
  work: (operations: Operations) => Promise<T>,
): Promise<T> {
  const { config } = asOwner(loaded);
  if (config.journal.type !== 'kafka') return withOperations(loaded, work);
  await using journal = closing(await openTopics(config));
  const topic = journal.topicAccount();
  return await work({
    ...operationsOn(journal, loaded),
    account: (since, until) => topic.account(since, until, Object.keys(config.sinks)),
    listHeads: (after) => topic.heads(after),
  });
}

/** Opens the topics of a config without delivering their events. */
export function openTopics(config: Config): Promise<KafkaJournal> {
  const table = compileRoutes(config.routes);
  return openKafkaJournal(config.journal, {
    maxWaiting: 0,
    targetsOf: ({ type, handling }) => handling.only?.map(parseTarget) ?? table.routesFor(type).targets,
    sinks: () => Object.keys(config.sinks),
    handOver: () => Promise.resolve(),
    flushSink: () => undefined,
    isErased: ErasedUsers.open(config.erasure.path).isErased,
    log: SILENT,
  });
}

function remote(client: AdminClient): OpenOperations {
  return { operations: client.operations(), close: () => Promise.resolve() };
}

/** Opens the existing journal of a config. @throws MillraceError journal_missing, journal_in_use */
export function openJournal(
  { journal }: Config,
  more: Partial<SqliteJournalOptions> = {},
): Promise<SqliteJournal> {
  const quiet = { create: false, maintained: false, clock: systemClock, onFailure: () => undefined };
  return SqliteJournal.open({ ...journal, ...quiet, ...more });
}
