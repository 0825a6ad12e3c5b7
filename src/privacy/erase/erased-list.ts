import { createSecretKey, hash, randomBytes, type KeyObject } from 'node:crypto';
import { type Stats, statSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ErasedUser } from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { bytesIfThere, errorCode, makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { appendJsonLine, jsonLinesOf, readJsonLines } from '../../lib/json-lines.ts';
import { writeOnce } from '../../lib/new-file.ts';

const KEY = 'key';
const LIST = 'erased.jsonl';

/** One line of the list. */
export type Entry = ErasedUser & {
  readonly lifted?: boolean;
  /** Short keyed hash of the id, without a team: a word of a body with another tag needs no long hash. */
  readonly tag: number;
  /** For a user of one team: the hash for events that name no team. */
  readonly of_no_team?: string;
};

/** The list of erased users in an erasure folder, and the key of its hashes. */
export interface ErasedList {
  readonly entries: readonly Entry[];
  /** Null before the first user. */
  readonly key: KeyObject | null;
  /** `stampOf` when it was read. */
  readonly stamp: string;
  /** SHA-256 of the list, the same on every machine. */
  readonly digest: string;
}

/** Changes with the list, on one machine; empty without a list. */
export function stampOf(folder: string): string {
  const stats = statSync(join(folder, LIST), { throwIfNoEntry: false });
  return stats === undefined ? '' : stampIn(stats);
}

export function readList(folder: string): ErasedList {
  const stamp = stampOf(folder);
  const bytes = bytesIfThere(join(folder, LIST)) ?? Buffer.alloc(0);
  return listOf(bytes, readIfThere(join(folder, KEY)), stamp);
}

/**
 * Reads the list if it has changed, and does not block the process when the folder does not answer.
 * @param known stamp of the list that was read before
 * @returns null when it has not changed
 * @throws the system's error when there is no list
 */
export async function readListAside(folder: string, known: string): Promise<ErasedList | null> {
  const list = await open(join(folder, LIST));
  try {
    // Of the open file: a network file system may cache what it says of a name.
    const stamp = stampIn(await list.stat());
    if (stamp === known) return null;
    const bytes = await list.readFile();
    const key = await readFile(join(folder, KEY), 'utf8').catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') return null;
      throw error;
    });
    return listOf(bytes, key, stamp);
  } finally {
    await list.close();
  }
}

/** The lines of a file in an erasure folder. @throws MillraceError erasure_unreadable, naming file and line */
export function erasureLines<T>(path: string): T[] {
  try {
    return readJsonLines<T>(path);
  } catch (error) {
    throw new MillraceError('erasure_unreadable', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

export function addToList(folder: string, entry: Entry): Promise<void> {
  return appendJsonLine(join(folder, LIST), entry);
}

/** The key of the hashes, made when there is none; never replaced, as the list needs it. */
export async function makeKey(folder: string): Promise<KeyObject | null> {
  makeFolder(folder, 0o700);
  await writeOnce(join(folder, KEY), Buffer.from(`${randomBytes(32).toString('hex')}\n`), OWNER_ONLY);
  return keyIn(readIfThere(join(folder, KEY)));
}

export const KEYLESS = `has no ${KEY}`;

function listOf(bytes: Buffer, keyText: string | null, stamp: string): ErasedList {
  const entries = jsonLinesOf<Entry>(bytes, `${LIST}: `);
  if (entries.some(({ hash: hashed, tag }: Partial<Entry>) => hashed === undefined || tag === undefined))
    throw new Error(`${LIST} has a line without a hash or a tag: it is of another format`);
  const key = keyIn(keyText);
  if (key === null && entries.length > 0)
    throw new Error(`${LIST} exists without its ${KEY}; restore that from a backup`);
  return { entries, key, stamp, digest: hash('sha256', bytes) };
}

function stampIn({ ino, size, mtimeMs }: Pick<Stats, 'ino' | 'size' | 'mtimeMs'>): string {
  return `${ino} ${size} ${mtimeMs}`;
}

function keyIn(text: string | null): KeyObject | null {
  if (text === null) return null;
  const digits = text.trim();
  if (!/^[0-9a-f]{64}$/.test(digits)) throw new Error(`${KEY} is not 64 hex digits`);
  return createSecretKey(Buffer.from(digits, 'hex'));
}
