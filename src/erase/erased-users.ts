import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { canonicalId, type ErasedUser, type Subject } from '../core/erasure.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { Envelope } from '../core/event.ts';
import { errorCode, OWNER_ONLY, syncFolder, writeNew } from '../lib/durable.ts';
import { appendJsonLine, readJsonLines } from '../lib/json-lines.ts';

const KEY = 'key';
const LIST = 'erased.jsonl';

/** One line of the list. */
type Entry = ErasedUser & { readonly lifted?: boolean };

/**
 * Users whose data is gone and whose events are dropped, for good or until it is lifted. On disk stand only keyed hashes of
 * their ids; the random key lies beside them, so a list without its key tells nobody whether a user is on it.
 */
export class ErasedUsers {
  readonly #folder: string;
  #key: KeyObject | null = null;
  readonly #blocked = new Map<string, Entry>();
  /** Kinds of subjects on the list: hashing is the only cost of a look-up. */
  readonly #kinds = new Set<string>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Reads the list of an erasure folder; makes nothing, for most never erase.
   * @throws MillraceError erasure_unreadable
   */
  static open(folder: string): ErasedUsers {
    const users = new ErasedUsers(folder);
    users.reload();
    return users;
  }

  get size(): number {
    return this.#blocked.size;
  }

  /** Reads the list again: another process may have added to it. */
  reload(): void {
    try {
      const entries = readJsonLines<Entry>(join(this.#folder, LIST));
      this.#key = readKey(this.#folder);
      if (this.#key === null && entries.length > 0)
        throw new Error(`${LIST} is there without its ${KEY}; restore that from a backup`);
      this.#blocked.clear();
      this.#kinds.clear();
      for (const entry of entries) this.#take(entry);
    } catch (error) {
      throw new MillraceError('erasure_unreadable', `${this.#folder}: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Whether an event is of an erased user. Costs nothing while nobody is, else a hash or two, 3 µs each. */
  has({ team, user, clientUser }: Pick<Envelope, 'team' | 'user' | 'clientUser'>): boolean {
    if (this.#blocked.size === 0) return false;
    return (
      this.#isBlocked('user', user, team) ||
      (this.#kinds.has('client_user') && this.#isBlocked('client_user', clientUser, team))
    );
  }

  /** Only once there is a key: a list with a user on it has one. */
  hashOf({ by, id, team }: Omit<Subject, 'request'>): string {
    if (this.#key === null) throw new MillraceError('erasure_unreadable', `${this.#folder} has no ${KEY}`);
    const scope = team === null ? '' : canonicalId(team);
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([by, canonicalId(id), scope]))
      .digest('hex');
  }

  /** From now on, and durably, the subject's events are dropped. */
  async block(subject: Subject, at: string): Promise<void> {
    this.#key ??= await makeKey(this.#folder);
    const hash = this.hashOf(subject);
    if (this.#blocked.has(hash)) return;
    await this.#append({ hash, by: subject.by, scoped: subject.team !== null, at });
  }

  /** Takes the subject's events again; false when it was not on the list. */
  async lift(subject: Omit<Subject, 'request'>, at: string): Promise<boolean> {
    if (this.#key === null) return false;
    const hash = this.hashOf(subject);
    const known = this.#blocked.get(hash);
    if (known === undefined) return false;
    await this.#append({ ...known, at, lifted: true });
    return true;
  }

  list(): readonly ErasedUser[] {
    return Array.from(this.#blocked.values(), ({ hash, by, scoped, at }) => ({ hash, by, scoped, at }));
  }

  #isBlocked(by: Subject['by'], id: string | null, team: string | null): boolean {
    if (id === null) return false;
    if (this.#blocked.has(this.hashOf({ by, id, team: null }))) return true;
    return team !== null && this.#kinds.has('scoped') && this.#blocked.has(this.hashOf({ by, id, team }));
  }

  async #append(entry: Entry): Promise<void> {
    await appendJsonLine(join(this.#folder, LIST), entry);
    this.#take(entry);
  }

  #take(entry: Entry): void {
    if (entry.lifted === true) {
      this.#blocked.delete(entry.hash);
      return;
    }
    this.#blocked.set(entry.hash, entry);
    this.#kinds.add(entry.by);
    if (entry.scoped) this.#kinds.add('scoped');
  }
}

/** Null when there is none yet. */
function readKey(folder: string): KeyObject | null {
  let text: string;
  try {
    text = readFileSync(join(folder, KEY), 'utf8').trim();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
  if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${KEY} is not 64 hex digits`);
  return createSecretKey(Buffer.from(text, 'hex'));
}

/** The key of the folder; made once, and never replaced: the list would be of no use with another. */
async function makeKey(folder: string): Promise<KeyObject | null> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFirst(join(folder, KEY), `${randomBytes(32).toString('hex')}\n`);
  return readKey(folder);
}

/** Makes a file that is there whole or not at all; one that is there already stays. */
async function writeFirst(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  await writeNew(temporary, Buffer.from(text), OWNER_ONLY);
  // Two processes can be at it: the first one's file counts.
  await link(temporary, path).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  await unlink(temporary);
  await syncFolder(dirname(path));
}
