import { setTimeout as sleep } from 'node:timers/promises';
import { Audit, auditedErasures } from '../../observe/admin/audit.ts';
import type { Config, ResolvedConfig } from '../../config/config.ts';
import { MillraceError } from '../../core/errors.ts';
import type { ErasureProgress, Erasures } from '../../core/erasure.ts';
import { ErasedUsers } from '../../privacy/erase/erased-users.ts';
import { createErasures } from '../../privacy/erase/stores.ts';
import { ownerFolder, isLocal } from '../../journal/owner.ts';
import type { KafkaJournal } from '../../journal/kafka/store.ts';
import type { SqliteJournal } from '../../journal/sqlite-journal.ts';
import { aboutBytes } from '../../lib/units.ts';
import { Cell } from '../../lib/live.ts';
import { openProof } from '../../privacy/proof/open.ts';
import { AdminClient } from '../admin-client.ts';
import { note, type Io } from '../io.ts';
import { openJournal, openTopics } from '../operations.ts';
import { StatusLine } from '../status-line.ts';

/**
 * Runs `work` on the erasures of the config: through the running receiver, else on the folders. The journal is opened only when
 * something is due, because opening writes to it.
 */
export async function withErasures<T>(
  loaded: ResolvedConfig,
  io: Io,
  work: (erasures: Erasures) => Promise<T>,
): Promise<T> {
  const { config } = loaded;
  const client = AdminClient.of(config);
  const status = new StatusLine(io);
  if (client !== null && (await client.isListening())) return work(watched(client, status, io.signal));
  let opened: Promise<OpenJournal | null> | null = null;
  const error = (fields: object, message: string): void => note(io, `${message} ${JSON.stringify(fields)}`);
  const erasures = createErasures({
    plan: new Cell(loaded),
    users: ErasedUsers.open(config.erasure.path),
    journal: () => (opened ??= journalOf(config)),
    proof: openProof(config),
    log: { info: () => undefined, warn: () => undefined, error },
    onProgress: (progress) => show(status, progress),
    signal: io.signal,
  });
  try {
    const audited = auditedErasures(erasures, new Audit(ownerFolder(config)), 'command');
    return await work({ ...audited, run: () => audited.run().finally(() => status.clear()) });
  } finally {
    const journal = await (opened as Promise<OpenJournal | null> | null)?.catch(() => null);
    await journal?.close();
  }
}

/** Milliseconds between two requests for progress. */
const ASK_EVERY_MS = 500;

/** The erasures of a running receiver. A run shows progress, and ends when the receiver stops to answer. */
function watched(client: AdminClient, status: StatusLine, interrupt: AbortSignal): Erasures {
  const run = async (): ReturnType<Erasures['run']> => {
    const over = new AbortController();
    const { signal } = over;
    const erasures = client.erasures(AbortSignal.any([interrupt, signal]));
    const watch = async (): Promise<void> => {
      for (;;) {
        await sleep(ASK_EVERY_MS, undefined, { signal });
        const progress = await erasures.progress?.();
        if (progress && !signal.aborted) show(status, progress);
      }
    };
    // Progress may fail while the run continues.
    const watching = watch().catch(async (error: unknown) => {
      if (!signal.aborted && !(await client.isListening())) over.abort(error);
    });
    try {
      return await erasures.run();
    } catch (error) {
      throw interrupt.aborted ? new MillraceError('interrupted', CONTINUES, { cause: error }) : error;
    } finally {
      over.abort();
      await watching;
      status.clear();
    }
  };
  return { ...client.erasures(interrupt), run };
}

const CONTINUES = 'the receiver continues the run; `millrace erase --list` shows waiting requests';

function show(status: StatusLine, { store, stores, files, total, bytes }: ErasureProgress): void {
  status.show(
    () =>
      `store ${store} of ${stores}: searched ${files}/${total} files, ${aboutBytes(bytes)}${status.pace(files, total)}`,
  );
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
