import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { ErasableStore, ErasureResult, Subject } from '../../../src/core/erasure.ts';
import type { JournalEvent } from '../../../src/core/event.ts';
import { GuardedIngest, type Ingest, type IngestStore, type IsErased } from '../../../src/core/ingest.ts';
import { ErasedUsers } from '../../../src/privacy/erase/erased-users.ts';
import { openFolder } from '../../../src/privacy/erase/open-folder.ts';
import { LocalErasures, type LocalErasuresOptions } from '../../../src/privacy/erase/local-erasures.ts';
import { placeErasure, type PlaceErasureOptions } from '../../../src/privacy/erase/place-erasure.ts';
import { SqliteJournal, type SqliteJournalOptions } from '../../../src/journal/sqlite-journal.ts';
import { proofIn } from '../../support/archives.ts';

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** Every byte of every file below the folders, compressed files also decompressed, by path. */
export function* contentsOf(folders: readonly string[]): Generator<[path: string, bytes: Buffer]> {
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const bytes = readFileSync(path);
      yield [path, Buffer.concat([Buffer.from(path), bytes])];
      if (bytes.subarray(0, 2).equals(GZIP)) yield [path, gunzipSync(bytes)];
      else if (bytes.subarray(0, 4).equals(ZSTD)) yield [path, zstdDecompressSync(bytes)];
    }
  }
}

/**
 * Where any of these texts stands, in a path or in bytes, free pages of databases included; in any case,
 * and as base64 at each of its three offsets.
 */
export function find(folders: readonly string[], texts: readonly string[]): string[] {
  for (;;) {
    try {
      return findOnce(folders, texts);
    } catch (error) {
      // A receiver that runs has replaced a file after it was listed; where its bytes are now only a new list tells.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

function findOnce(folders: readonly string[], texts: readonly string[]): string[] {
  const needles = texts.flatMap((text) => [text.toLowerCase(), ...base64Of(text)]);
  const found = new Set<string>();
  for (const [path, bytes] of contentsOf(folders)) {
    const raw = bytes.toString('latin1');
    const folded = raw.toLowerCase();
    for (const needle of needles) if (folded.includes(needle) || raw.includes(needle)) found.add(path);
  }
  return [...found];
}

function base64Of(text: string): string[] {
  return [0, 1, 2].map((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)]);
    const encoded = padded.toString('base64');
    return encoded.slice(4, -4);
  });
}

export const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Bounds that no test reaches. */
export const JOURNAL_LIMITS = { retention: 1e12, maxBytes: 2 ** 30, dedupWindow: 1e12 };

export const FIELDS = { team: 'team_id', user: 'user_id', clientUser: 'client_user_id' };

/** The way into a journal that a receiver has: events of erased users are kept out. */
export function guarded(journal: IngestStore, isErased: IsErased): Ingest {
  return new GuardedIngest(journal, isErased, { stored: () => undefined, storedInvalid: () => undefined });
}

export function folderStore(
  path: string,
  exclude: readonly string[] = [],
  more: Partial<PlaceErasureOptions> = {},
): ErasableStore {
  const open = openFolder({ path, exclude, log: QUIET });
  return placeErasure({ name: path, open, fields: FIELDS, ...more });
}

/** Erasures over some stores, without a grace period unless one is given. */
export function erasuresOver(
  folder: string,
  stores: readonly ErasableStore[],
  more: Partial<LocalErasuresOptions> = {},
): { erasures: LocalErasures; users: ErasedUsers } {
  const users = ErasedUsers.open(folder);
  const erasures = new LocalErasures({
    folder,
    grace: 0,
    users,
    stores: () => Promise.resolve(stores),
    proof: proofIn(folder),
    clock: systemClock,
    log: QUIET,
    signal: new AbortController().signal,
    ...more,
  });
  return { erasures, users };
}

/** Who is to be erased: a made-up user by number, or as it is said. */
type Whom = number | (Pick<Subject, 'id'> & Partial<Subject>);

/** Asks for the erasure of each, and runs all that was asked for. */
export async function eraseNow(
  erasures: Pick<LocalErasures, 'request' | 'run'>,
  ...whom: readonly Whom[]
): Promise<ErasureResult> {
  for (const one of whom) {
    const said = typeof one === 'number' ? { id: userId(one) } : one;
    await erasures.request({ by: 'user', team: null, ...said }, true);
  }
  return erasures.run();
}

/** The same, of an installation in this folder. */
export function eraseFrom(
  root: string,
  stores: readonly ErasableStore[],
  ...whom: readonly Whom[]
): Promise<ErasureResult> {
  return eraseNow(erasuresOver(join(root, 'erasure'), stores).erasures, ...whom);
}

/** A journal whose failure is one of the process. */
export function openJournal(path: string, more: Partial<SqliteJournalOptions> = {}): Promise<SqliteJournal> {
  return SqliteJournal.open({
    ...JOURNAL_LIMITS,
    path,
    create: true,
    clock: systemClock,
    onFailure: (error) => {
      throw error;
    },
    ...more,
  });
}

/** The same, closed when the test ends. */
export async function journalIn(...given: Parameters<typeof openJournal>): Promise<SqliteJournal> {
  const journal = await openJournal(...given);
  onTestFinished(() => journal.close());
  return journal;
}

export function userId(n: number): string {
  return `6b0e9a52-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

/** Text of a payload that no other user has, nor any envelope. */
export function secretOf(n: number): string {
  return `made-up-secret-of-user-${n}-`;
}

const TEAM = '6b0e9a52-0000-4000-8000-ffffffffffff';

/** The nth event of a made-up user. */
export function eventOf(user: number, n: number, changes: Partial<JournalEvent> = {}): JournalEvent {
  const id = userId(user);
  const type = 'daily.data.meal.created';
  const body = {
    event_type: type,
    team_id: TEAM,
    user_id: id,
    client_user_id: `made-up-client-${user}`,
    data: { user_id: id, note: `${secretOf(user)}${n}`, filler: 'made up '.repeat(20) },
  };
  return {
    seq: user * 1000 + n + 1,
    id: `msg_${user}_${n}`,
    source: 'webhooks',
    type,
    team: TEAM,
    user: id,
    clientUser: `made-up-client-${user}`,
    receivedAt: Date.UTC(2026, 10, 21, 12) + user * 60_000 + n,
    headers: { 'webhook-id': `msg_${user}_${n}` },
    handling: {},
    body: Buffer.from(JSON.stringify(body)),
    ...changes,
  };
}
