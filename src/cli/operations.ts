import { createValidatorFor } from '../plan.ts';
import { createOperations } from '../admin/operations.ts';
import type { LoadedConfig } from '../config/config.ts';
import { systemClock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { Operations } from '../core/operations.ts';
import { readOwner } from '../journal/owner.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
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
  const remote = (base: string): OpenOperations => {
    return { operations: remoteOperations(base, config.admin.token), close: () => Promise.resolve() };
  };
  if (config.acknowledge === 'delivered') return remote(adminOf(config));
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
    const admin = readOwner(config.journal.path)?.admin ?? null;
    if (admin !== null) return remote(admin);
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
  });
  return { operations, close: () => journal.close() };
}

/** The operations of the receiver that says it runs here; null when none does. It may have died since. */
export function receiverOf({ config }: LoadedConfig): Operations | null {
  const admin =
    config.acknowledge === 'delivered' ? adminOf(config) : (readOwner(config.journal.path)?.admin ?? null);
  return admin === null ? null : remoteOperations(admin, config.admin.token);
}

/** With `acknowledge: delivered` nothing on disk says where it runs; the config does. */
function adminOf({ admin }: LoadedConfig['config']): string {
  return `http://${admin.host.includes(':') ? `[${admin.host}]` : admin.host}:${admin.port}`;
}
