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

const RECORD = z.object({
  /** `fingerprintOf` the secret. */
  secret: z.string(),
  team: z.string(),
  /** Id at the service; null until the webhook is known to exist. */
  webhook: z.string().nullable(),
  url: z.string(),
  /** `pending`: stored here, perhaps not at the service. `current`: the service signs with it. `superseded`: it did before. */
  state: z.enum(['pending', 'current', 'superseded']),
  /** ISO 8601. */
  since: z.string(),
  /** Fingerprint of the secret that this one replaces. */
  replaces: z.string().nullable(),
});

export type SecretRecord = z.output<typeof RECORD>;

/**
 * Which stored secret belongs to which webhook, and the state of a change; a file beside the secrets, without them. A change is
 * recorded before it is made, so that the next run can complete it. One command at a time holds the file.
 */
export class SecretRecords {
  readonly #store: SecretStore;
  readonly #lock: FileLock;
  #records: readonly SecretRecord[];

  private constructor(store: SecretStore, lock: FileLock, records: readonly SecretRecord[]) {
    this.#store = store;
    this.#lock = lock;
    this.#records = records;
  }

  /** @throws MillraceError folder_in_use naming the other command, folder_unwritable, usage */
  static async open(store: SecretStore): Promise<SecretRecords> {
    const { path } = store;
    const refusal = (owner: string): Error =>
      new MillraceError('folder_in_use', `${path} is being changed by ${owner}`);
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const lock = await own(`${path}.lock`, refusal);
      try {
        return new SecretRecords(store, lock, read(path));
      } catch (error) {
        lock.release('remove');
        throw error;
      }
    } catch (error) {
      throw folderError(path, error);
    }
  }

  /** Records of stored secrets; a secret that a person has removed is ignored. */
  get all(): readonly SecretRecord[] {
    const stored = new Set(this.#store.read().map(fingerprintOf));
    return this.#records.filter(({ secret }) => stored.has(secret));
  }

  secretOf({ secret }: SecretRecord): string | null {
    return this.#store.read().find((one) => fingerprintOf(one) === secret) ?? null;
  }

  /** Adds records, or replaces those of the same secret and webhook. */
  async put(...changed: readonly SecretRecord[]): Promise<void> {
    const others = this.#records.filter((record) => !changed.some((one) => areSame(one, record)));
    await this.#save([...others, ...changed]);
  }

  /** Records a pending secret, and stores it in front of the others. */
  async store(
    secret: string,
    about: Pick<SecretRecord, 'team' | 'webhook' | 'url' | 'replaces'>,
  ): Promise<SecretRecord> {
    const record: SecretRecord = {
      ...about,
      secret: fingerprintOf(secret),
      state: 'pending',
      since: now(),
    };
    await this.put(record);
    const others = this.#store.read().filter((one) => one !== secret);
    await this.#store.write([secret, ...others]);
    return record;
  }

  /** Stores the secret that the service has answered, when it made another one. @returns its record */
  async accept(secret: string, record: SecretRecord, io: Io): Promise<SecretRecord> {
    if (fingerprintOf(secret) === record.secret) return record;
    note(io, 'the service made a secret of its own, which is stored instead');
    const other = await this.store(secret, record);
    await this.remove([record]);
    return other;
  }

  /** Removes records, and first their secrets; a secret that another webhook uses stays. */
  async remove(gone: readonly SecretRecord[]): Promise<void> {
    const kept = this.#records.filter((record) => !gone.includes(record));
    const needed = new Set(kept.map(({ secret }) => secret));
    const unneeded = new Set(gone.flatMap(({ secret }) => (needed.has(secret) ? [] : [secret])));
    const stored = this.#store.read();
    const left = stored.filter((one) => !unneeded.has(fingerprintOf(one)));
    if (left.length < stored.length) await this.#store.write(left);
    await this.#save(kept);
  }

  release(): void {
    this.#lock.release('remove');
  }

  async #save(records: readonly SecretRecord[]): Promise<void> {
    const { path } = this.#store;
    try {
      await writeState(dirname(path), stateOf(path), { entries: records }, OWNER_ONLY);
    } catch (error) {
      throw folderError(path, error);
    }
    this.#records = records;
  }
}

/** A webhook without an id is compared by its address. */
function areSame(one: SecretRecord, other: SecretRecord): boolean {
  if (one.secret !== other.secret || one.team !== other.team) return false;
  return one.webhook === null || other.webhook === null
    ? one.url === other.url
    : one.webhook === other.webhook;
}

/** Identifies a secret without revealing it. */
export function fingerprintOf(secret: string): string {
  return hash('sha256', secret, 'hex').slice(0, 16);
}

/** The record of a secret that the service signs with already. */
export function currentRecord(
  secret: string,
  webhook: Pick<SecretRecord, 'team' | 'webhook' | 'url'>,
): SecretRecord {
  return { secret, ...webhook, state: 'current', since: now(), replaces: null };
}

export function now(): string {
  return new Date().toISOString();
}

function stateOf(path: string): string {
  return `${basename(path)}.webhooks.json`;
}

function read(path: string): readonly SecretRecord[] {
  const state = readState(dirname(path), stateOf(path));
  if (state === null) return [];
  const result = z.object({ entries: z.array(RECORD) }).safeParse(state);
  if (result.success) return result.data.entries;
  throw new FolderRefused(
    'not_ours',
    `${path}.webhooks.json is not what millrace writes there: move it away`,
  );
}
