import { hash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { folderError, MillraceError } from '../../core/errors.ts';
import { OWNER_ONLY } from '../../lib/durable.ts';
import { own, type FileLock } from '../../lib/file-lock.ts';
import { FolderRefused } from '../../lib/folder-refused.ts';
import { readState, writeState } from '../../lib/work-folder.ts';
import { note, type Io } from '../io.ts';
import type { SecretStore } from './secret-store.ts';

const ENTRY = z.object({
  /** Of the secret; see `fingerprintOf`. */
  secret: z.string(),
  team: z.string(),
  /** Id at the service; null for one that may not be there yet. */
  webhook: z.string().nullable(),
  url: z.string(),
  /** `pending`: stored here, perhaps not at the service. `current`: the service signs with it. `superseded`: it did before. */
  state: z.enum(['pending', 'current', 'superseded']),
  /** ISO 8601. */
  since: z.string(),
  /** The secret that it takes the place of. */
  replaces: z.string().nullable(),
});

export type Entry = z.output<typeof ENTRY>;

/**
 * Which stored secret belongs to which webhook, and how far a change has come; a file beside the secrets, without them.
 * A change is noted before it is made, so that the next run finishes what one that was killed had begun. One command at a
 * time holds it.
 */
export class Ledger {
  readonly #store: SecretStore;
  readonly #lock: FileLock;
  #entries: readonly Entry[];

  private constructor(store: SecretStore, lock: FileLock, entries: readonly Entry[]) {
    this.#store = store;
    this.#lock = lock;
    this.#entries = entries;
  }

  /** @throws MillraceError folder_in_use naming the command that has it, folder_unwritable, usage */
  static async open(store: SecretStore): Promise<Ledger> {
    const { path } = store;
    const refusal = (owner: string): Error =>
      new MillraceError('folder_in_use', `${path} is being changed by ${owner}`);
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const lock = await own(`${path}.lock`, refusal);
      try {
        return new Ledger(store, lock, read(path));
      } catch (error) {
        lock.release('remove');
        throw error;
      }
    } catch (error) {
      throw folderError(path, error);
    }
  }

  /** Those whose secrets are stored: what a person has taken out by hand is forgotten. */
  get entries(): readonly Entry[] {
    const stored = new Set(this.#store.read().map(fingerprintOf));
    return this.#entries.filter(({ secret }) => stored.has(secret));
  }

  secretOf({ secret }: Entry): string | null {
    return this.#store.read().find((one) => fingerprintOf(one) === secret) ?? null;
  }

  /** Notes entries in the place of those of the same secret and webhook. */
  async put(...changed: readonly Entry[]): Promise<void> {
    const others = this.#entries.filter((entry) => !changed.some((one) => areSame(one, entry)));
    await this.#save([...others, ...changed]);
  }

  /** Notes a secret that is going to be stored, and stores it in front of the others. */
  async store(secret: string, entry: Omit<Entry, 'secret' | 'state' | 'since'>): Promise<Entry> {
    const noted: Entry = { ...entry, secret: fingerprintOf(secret), state: 'pending', since: now() };
    await this.put(noted);
    const others = this.#store.read().filter((one) => one !== secret);
    await this.#store.write([secret, ...others]);
    return noted;
  }

  /** What the service answered is what it signs with, whoever made it. @returns the entry of that secret, stored as well */
  async given(secret: string, entry: Entry, io: Io): Promise<Entry> {
    if (fingerprintOf(secret) === entry.secret) return entry;
    note(io, 'the service made a secret of its own, which is stored instead');
    const settled = await this.store(secret, entry);
    await this.remove([entry]);
    return settled;
  }

  /** Takes entries out, and first their secrets where these are stored; one that another webhook has stays. */
  async remove(gone: readonly Entry[]): Promise<void> {
    const kept = this.#entries.filter((entry) => !gone.includes(entry));
    const needed = new Set(kept.map(({ secret }) => secret));
    const out = new Set(gone.flatMap(({ secret }) => (needed.has(secret) ? [] : [secret])));
    const stored = this.#store.read();
    const left = stored.filter((one) => !out.has(fingerprintOf(one)));
    if (left.length < stored.length) await this.#store.write(left);
    await this.#save(kept);
  }

  release(): void {
    this.#lock.release('remove');
  }

  async #save(entries: readonly Entry[]): Promise<void> {
    const { path } = this.#store;
    try {
      await writeState(dirname(path), stateOf(path), { entries }, OWNER_ONLY);
    } catch (error) {
      throw folderError(path, error);
    }
    this.#entries = entries;
  }
}

/** An entry of a webhook that may not be there yet is told by the address. */
function areSame(one: Entry, other: Entry): boolean {
  if (one.secret !== other.secret || one.team !== other.team) return false;
  return one.webhook === null || other.webhook === null
    ? one.url === other.url
    : one.webhook === other.webhook;
}

/** Tells a secret from others. Secrets are random and long, so it says nothing of theirs. */
export function fingerprintOf(secret: string): string {
  return hash('sha256', secret, 'hex').slice(0, 16);
}

/** Of a secret that the service signs with already. */
export function currentEntry(secret: string, webhook: Pick<Entry, 'team' | 'webhook' | 'url'>): Entry {
  return { secret, ...webhook, state: 'current', since: now(), replaces: null };
}

export function now(): string {
  return new Date().toISOString();
}

function stateOf(path: string): string {
  return `${basename(path)}.webhooks.json`;
}

function read(path: string): readonly Entry[] {
  const state = readState(dirname(path), stateOf(path));
  if (state === null) return [];
  const result = z.object({ entries: z.array(ENTRY) }).safeParse(state);
  if (result.success) return result.data.entries;
  throw new FolderRefused(
    'not_ours',
    `${path}.webhooks.json is not what millrace writes there: move it away`,
  );
}
