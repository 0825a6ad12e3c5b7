import { request } from 'undici';
import type { Config, LoadedConfig } from '../config/config.ts';
import { systemClock } from '../core/clock.ts';
import { CATALOGUE, MillraceError, messageOf, type ErrorCode } from '../core/errors.ts';
import type { Erasures } from '../core/erasure.ts';
import { ErasedUsers } from '../erase/erased-users.ts';
import { createErasures } from '../erasing.ts';
import { readOwner } from '../journal/owner.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import { openProof } from '../proof/open.ts';
import { note, type Io } from './io.ts';

/**
 * Runs `work` on the erasures of the config: through the admin API of a receiver that runs, else on the folders. The
 * journal is opened only when something is due, for opening it alone writes to it.
 */
export async function withErasures<T>(
  loaded: LoadedConfig,
  io: Io,
  work: (erasures: Erasures) => Promise<T>,
): Promise<T> {
  const { config } = loaded;
  const admin = adminOf(config);
  if (admin !== null && (await isListening(admin))) return work(remoteErasures(admin, config.admin.token));
  let opened: Promise<SqliteJournal | null> | null = null;
  const say = (fields: object, message: string): void => note(io, `${message} ${JSON.stringify(fields)}`);
  const erasures = createErasures({
    config: () => config,
    users: ErasedUsers.open(config.erasure.path),
    journal: () => (opened ??= openJournal(config)),
    proof: openProof(config),
    log: { info: () => undefined, warn: () => undefined, error: say },
    onProgress: progress(io),
    signal: io.signal,
  });
  try {
    return await work(erasures);
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

/** Where a receiver would listen: what it has noted beside its journal; without a journal the config says. */
function adminOf({ acknowledge, admin, journal }: Config): string | null {
  if (acknowledge !== 'delivered') return readOwner(journal.path)?.admin ?? null;
  if (!admin.enabled) return null;
  const host = admin.host.includes(':') ? `[${admin.host}]` : admin.host;
  return `http://${host}:${admin.port}`;
}

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
function remoteErasures(base: string, token: string | null): Erasures {
  const call = async <T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> => {
    const url = `${base}/api/erasures${path}`;
    try {
      const response = await request(url, {
        method,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // A run answers when it is done, which takes as long as reading the archive does.
        headersTimeout: path === '/run' ? 0 : 30_000,
        bodyTimeout: 30_000,
      });
      const answer: unknown = await response.body.json();
      if (response.statusCode === 200) return answer as T;
      const { code, detail = `status ${response.statusCode}` } = Object(answer) as {
        code?: string;
        detail?: string;
      };
      throw errorOf(code, `${url}: ${detail}`);
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      throw new MillraceError('receiver_unreachable', `${url}: ${messageOf(error)}`, { cause: error });
    }
  };
  return {
    request: (subject, now) => call('POST', '', { ...subject, now }),
    cancel: (subject) => call('POST', '/cancel', subject),
    list: () => call('GET', ''),
    run: () => call('POST', '/run', {}),
  };
}

/** The receiver's own error where it has one that says what to do. */
function errorOf(code: string | undefined, detail: string): MillraceError {
  const known = code !== undefined && code.startsWith('erasure_') && Object.hasOwn(CATALOGUE, code);
  return new MillraceError(known ? (code as ErrorCode) : 'receiver_unreachable', detail);
}
