import { createValidatorFor } from '../validate/envelope.ts';
import { Audit, auditedOperations } from '../admin/audit.ts';
import { createOperations } from '../admin/operations.ts';
import type { Config, LoadedConfig } from '../config/config.ts';
import { systemClock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { GivenUp, Operations } from '../core/operations.ts';
import { dropSink } from '../deliver/delivery.ts';
import { ErasedUsers } from '../erase/erased-users.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import { accessTo, type Access } from './receiver-access.ts';
import { remoteOperations } from './remote-operations.ts';

/** The operations on the journal a config names, for as long as they are needed. */
export interface OpenOperations {
  readonly operations: Operations;
  close(): Promise<void>;
}

/**
 * Runs `work` on the journal the config names: through the admin API of the process that holds it, else directly.
 * @throws MillraceError journal_missing, or journal_in_use when its holder has no admin API
 */
export async function withOperations<T>(
  loaded: LoadedConfig,
  work: (operations: Operations) => Promise<T>,
): Promise<T> {
  const { operations, close } = await openOperations(loaded);
  try {
    return await work(operations);
  } finally {
    await close();
  }
}

/** The same for work that takes long; without a receiver the journal is held until `close`. */
export async function openOperations(loaded: LoadedConfig): Promise<OpenOperations> {
  const { config } = loaded;
  if (config.acknowledge === 'delivered') {
    const access = accessTo(config);
    if (access !== null) return remote(access);
    throw new MillraceError(
      'usage',
      'with acknowledge: delivered only the admin listener can be asked (admin.enabled)',
    );
  }
  let journal: SqliteJournal;
  try {
    journal = await SqliteJournal.open({
      ...config.journal,
      create: false,
      clock: systemClock,
      onFailure: () => undefined,
    });
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'journal_in_use') throw error;
    const access = accessTo(config);
    if (access !== null) return remote(access);
    throw new MillraceError(
      'journal_in_use',
      `${error.detail}, which has no admin listener to ask (admin.enabled)`,
    );
  }
  const operations = createOperations({
    journal,
    validate: createValidatorFor(config),
    pid: null,
    sinks: () => [],
    hasSink: (name) => config.sinks[name] !== undefined,
    dropSink: async (sink) => drop(journal, config, sink),
  });
  const audit = new Audit(config.journal.path);
  return { operations: auditedOperations(operations, audit, 'command'), close: () => journal.close() };
}

/** @throws MillraceError usage for a sink that could still deliver, or that nothing is known of */
function drop(journal: SqliteJournal, config: Config, sink: string): Promise<GivenUp> {
  if (config.sinks[sink] !== undefined)
    throw new MillraceError('usage', `sinks.${sink} is in the config: it delivers what waits for it`);
  const users = ErasedUsers.open(config.erasure.path);
  return dropSink(journal, sink, (event) => users.has(event), Date.now());
}

function remote(access: Access): OpenOperations {
  return { operations: remoteOperations(access), close: () => Promise.resolve() };
}

/** The operations of the receiver that says it runs here; null when none does. It may have died since. */
export function receiverOf({ config }: LoadedConfig): Operations | null {
  const access = accessTo(config);
  return access === null ? null : remoteOperations(access);
}
