import { createSecretKey, hash, randomBytes, type KeyObject } from 'node:crypto';
import { type Stats, statSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ErasedUser } from '../../core/erasure.ts';
import { errorCode, makeFolder, OWNER_ONLY, readIfThere } from '../../lib/durable.ts';
import { appendJsonLine, jsonLinesOf } from '../../lib/json-lines.ts';
import { writeOnce } from '../../lib/new-file.ts';

const KEY = 'key';
const LIST = 'erased.jsonl';

/** One line of the list. */
export type Entry = ErasedUser & {
  readonly lifted?: boolean;
  /** A short keyed hash of the id, without a team: says which words of a body are worth the long one. */
  readonly tag: number;
  /** Of a user of one team: the hash without the team, for events that name none. */
  readonly of_no_team?: string;
};

/** The list of erased users as it lies in an erasure folder, and the key of its hashes. */
export interface ErasedList {
  readonly entries: readonly Entry[];
  /** Null when there is none yet. */
  readonly key: KeyObject | null;
  /** What `stampOf` said when it was read. */
  readonly stamp: string;
  /** SHA-256 of what is on it: the same on whichever machine it was read. */
  readonly digest: string;
}

/** Size and time of the list: differs when it is another than it was. Empty without one. Each machine may see others. */
export function stampOf(folder: string): string {
  const stats = statSync(join(folder, LIST), { throwIfNoEntry: false });
  return stats === undefined ? '' : stampIn(stats);
}

export function readList(folder: string): ErasedList {
  const stamp = stampOf(folder);
  return listOf(readIfThere(join(folder, LIST)) ?? '', readIfThere(join(folder, KEY)), stamp);
}

/**
 * The same, and nobody but who asked waits for a folder that does not answer.
 * @param known the stamp of what is known already
 * @returns null when it is as it was; rejects when there is none, for a list that is out of reach takes nobody off it
 */
export async function readListAside(folder: string, known: string): Promise<ErasedList | null> {
  const list = await open(join(folder, LIST));
  try {
    // Of the open file: over a network what is said of a name may be old.
    const stamp = stampIn(await list.stat());
    if (stamp === known) return null;
    const text = await list.readFile('utf8');
    const key = await readFile(join(folder, KEY), 'utf8').catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') return null;
      throw error;
    });
    return listOf(text, key, stamp);
  } finally {
    await list.close();
  }
}

export function addToList(folder: string, entry: Entry): Promise<void> {
  return appendJsonLine(join(folder, LIST), entry);
}

/** The key of the folder; made once, and never replaced: the list would be of no use with another. */
export async function makeKey(folder: string): Promise<KeyObject | null> {
  makeFolder(folder, 0o700);
  await writeOnce(join(folder, KEY), Buffer.from(`${randomBytes(32).toString('hex')}\n`), OWNER_ONLY);
  return keyIn(readIfThere(join(folder, KEY)));
}

/** Why there is nothing to hash ids with. */
export const KEYLESS = `has no ${KEY}`;

function listOf(text: string, keyText: string | null, stamp: string): ErasedList {
  const entries = jsonLinesOf<Entry>(text);
  // Without it nobody would find the user in a body.
  if (entries.some(({ tag }: Partial<Entry>) => tag === undefined))
    throw new Error(`${LIST} has a line without a tag: it is of another format`);
  const key = keyIn(keyText);
  if (key === null && entries.length > 0)
    throw new Error(`${LIST} exists without its ${KEY}; restore that from a backup`);
  return { entries, key, stamp, digest: hash('sha256', text) };
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
