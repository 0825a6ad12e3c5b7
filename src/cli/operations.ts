import { createValidatorFor } from '../plan.ts';
import { createOperations } from '../admin/operations.ts';
import type { LoadedConfig } from '../config/config.ts';
import { systemClock } from '../core/clock.ts';
import { MillraceError } from '../core/errors.ts';
import type { Operations } from '../core/operations.ts';
import { readOwner } from '../journal/owner.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import { remoteOperations } from './remote-operations.ts';

/**
 * Runs `work` on the journal the config names: through the admin API of the process that holds it, else directly.
 * @throws MillraceError journal_missing, or journal_in_use when its holder has no admin API
 */
export async function withOperations<T>(
  loaded: LoadedConfig,
  work: (operations: Operations) => Promise<T>,
): Promise<T> {
  const { config } = loaded;
  if (config.acknowledge === 'delivered') {
    // Nothing on disk says where it runs; the config does.
    const host = config.admin.host.includes(':') ? `[${config.admin.host}]` : config.admin.host;
    return work(remoteOperations(`http://${host}:${config.admin.port}`, config.admin.token));
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
    const admin = readOwner(config.journal.path)?.admin ?? null;
    if (admin === null) {
      throw new MillraceError(
        'journal_in_use',
        `${error.detail}, which has no admin listener to ask (admin.enabled)`,
      );
    }
    return work(remoteOperations(admin, config.admin.token));
  }
  try {
    return await work(
      createOperations({
        journal,
        validate: createValidatorFor(config),
        pid: null,
        sinks: () => [],
        hasSink: (name) => config.sinks[name] !== undefined,
      }),
    );
  } finally {
    await journal.close();
  }
}
