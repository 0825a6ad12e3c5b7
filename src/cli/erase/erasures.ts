import { request } from 'undici';
import { Audit, auditedErasures } from '../../admin/audit.ts';
import type { Config, ResolvedConfig } from '../../config/config.ts';
import { systemClock } from '../../core/clock.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Erasures } from '../../core/erasure.ts';
import { ErasedUsers } from '../../erase/erased-users.ts';
import { createErasures } from '../../erase/stores.ts';
import { ownerFolder } from '../../journal/owner.ts';
import { SqliteJournal } from '../../journal/sqlite-journal.ts';
import { Cell } from '../../lib/live.ts';
import { openProof } from '../../proof/open.ts';
import { note, type Io } from '../io.ts';
import { accessTo, ask, type Access } from '../receiver-access.ts';

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
  const access = accessTo(config);
  if (access !== null && (await isListening(access.url))) return work(remoteErasures(access));
  let opened: Promise<SqliteJournal | null> | null = null;
  const say = (fields: object, message: string): void => note(io, `${message} ${JSON.stringify(fields)}`);
  const erasures = createErasures({
    plan: new Cell(loaded),
    users: ErasedUsers.open(config.erasure.path),
    journal: () => (opened ??= openJournal(config)),
    proof: openProof(config),
    log: { info: () => undefined, warn: () => undefined, error: say },
    onProgress: progress(io),
    signal: io.signal,
  });
  try {
    return await work(auditedErasures(erasures, new Audit(ownerFolder(config)), 'command'));
  } finally {
    const journal = await (opened as Promise<SqliteJournal | null> | null)?.catch(() => null);
    await journal?.close();
  }
}

/** A line now and then, for archives that take a while. */
function progress(io: Io): (files: number, bytes: number) => void {
  let last = performance.now();
  return (files, bytes) => {
    if (performance.now() - last < SAY_EVERY) return;
    last = performance.now();
    note(io, `searched ${files} files, ${bytes} bytes`);
  };
}

const SAY_EVERY = 5000;

/** @throws MillraceError journal_in_use when its holder has no admin API, or does not answer */
async function openJournal({ acknowledge, journal }: Config): Promise<SqliteJournal | null> {
  if (acknowledge === 'delivered') return null;
  try {
    return await SqliteJournal.open({
      ...journal,
      create: false,
      clock: systemClock,
      onFailure: () => undefined,
    });
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'journal_missing') return null;
    throw error;
  }
}

async function isListening(base: string): Promise<boolean> {
  try {
    const { body } = await request(`${base}/livez`, { headersTimeout: 5000, bodyTimeout: 5000 });
    await body.dump();
    return true;
  } catch {
    return false;
  }
}

/** The erasures of a running receiver, through its admin API. */
function remoteErasures(access: Access): Erasures {
  const call = <T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> =>
    // A run answers when it is done, which takes as long as reading the archive does.
    ask(access, method, `/erasures${path}`, body, path === '/run' ? 0 : undefined);
  return {
    request: (subject, now) => call('POST', '', { ...subject, now }),
    cancel: (subject) => call('POST', '/cancel', subject),
    list: () => call('GET', ''),
    run: () => call('POST', '/run', {}),
  };
}
