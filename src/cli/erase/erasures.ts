import { Audit, auditedErasures } from '../../admin/audit.ts';
import type { Config, ResolvedConfig } from '../../config/config.ts';
import { isLocal } from '../../journal/local.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Erasures } from '../../core/erasure.ts';
import { ErasedUsers } from '../../erase/erased-users.ts';
import { createErasures } from '../../erase/stores.ts';
import { ownerFolder } from '../../journal/owner.ts';
import type { KafkaJournal } from '../../journal/kafka/store.ts';
import type { SqliteJournal } from '../../journal/sqlite-journal.ts';
import { formatAmount } from '../../lib/amount.ts';
import { Cell } from '../../lib/live.ts';
import { openProof } from '../../proof/open.ts';
import { AdminClient } from '../admin-client.ts';
import { note, type Io } from '../io.ts';
import { openJournal, openTopics } from '../operations.ts';
import { StatusLine } from '../status-line.ts';

/**
 * Runs `work` on the erasures of the config: through the admin API of a receiver that runs, else on the folders. The
 * journal is opened only when something is due, for opening it alone writes to it.
 */
export async function withErasures<T>(
  loaded: ResolvedConfig,
  io: Io,
  work: (erasures: Erasures) => Promise<T>,
): Promise<T> {
  const { config } = loaded;
  const client = AdminClient.of(config);
  if (client !== null && (await client.isListening())) return work(client.erasures());
  let opened: Promise<OpenJournal | null> | null = null;
  const say = (fields: object, message: string): void => note(io, `${message} ${JSON.stringify(fields)}`);
  const status = new StatusLine(io);
  const erasures = createErasures({
    plan: new Cell(loaded),
    users: ErasedUsers.open(config.erasure.path),
    journal: () => (opened ??= journalOf(config)),
    proof: openProof(config),
    log: { info: () => undefined, warn: () => undefined, error: say },
    onProgress: ({ store, stores, files, total, bytes }) =>
      status.show(
        () =>
          `store ${store} of ${stores}: searched ${files}/${total} files, ${formatAmount(bytes)}${status.pace(files, total)}`,
      ),
    signal: io.signal,
  });
  try {
    return await work(auditedErasures(erasures, new Audit(ownerFolder(config)), 'command'));
  } finally {
    const journal = await (opened as Promise<OpenJournal | null> | null)?.catch(() => null);
    await journal?.close();
  }
}

type OpenJournal = SqliteJournal | KafkaJournal;

/** @throws MillraceError journal_in_use when its holder has no admin API, or does not answer */
async function journalOf(config: Config): Promise<OpenJournal | null> {
  if (config.journal.type === 'kafka') return openTopics(config);
  if (!isLocal(config)) return null;
  try {
    return await openJournal(config);
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'journal_missing') return null;
    throw error;
  }
}
