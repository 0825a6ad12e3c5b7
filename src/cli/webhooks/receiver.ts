import { loadConfig } from '../../config/load.ts';
import type { LoadedConfig } from '../../config/config.ts';
import { messageOf } from '../../core/errors.ts';
import type { ReceivingStatus, SecretStatus } from '../../core/operations.ts';
import { AdminClient } from '../admin-client.ts';
import type { Io } from '../io.ts';
import { writtenAt, type SecretStore } from './secret-store.ts';

/**
 * Whether the receiver accepts the stored secrets.
 * - `accepts`: it does.
 * - `absent`: no receiver runs here with this config, or it has no admin API.
 * - `stale`: it has not read the secrets, for this reason.
 */
export type Acceptance =
  { readonly state: 'accepts' | 'absent' } | { readonly state: 'stale'; readonly reason: string };

/** Use of a stored secret, counted by the receiver. */
export type SecretUse = SecretStatus & Pick<ReceivingStatus['signing'], 'since'>;

/** The signing secrets of the receiver on this machine. */
export class LocalReceiver {
  readonly #loaded: LoadedConfig | null;
  readonly #store: SecretStore;
  readonly #io: Io;

  constructor(loaded: LoadedConfig | null, store: SecretStore, io: Io) {
    this.#loaded = loaded;
    this.#store = store;
    this.#io = io;
  }

  /** Makes it read the stored secrets if needed. @param mayReload false never reloads it */
  async accept(mayReload: boolean): Promise<Acceptance> {
    const client = await this.#client();
    if (client === null) return { state: 'absent' };
    if (await this.#isFresh(client)) return { state: 'accepts' };
    if (this.#store.variable !== null)
      return {
        state: 'stale',
        reason: `it has not read ${this.#store.name}: reload it (kill -HUP) if it runs beside that file and reads it as its .env, else restart it with it`,
      };
    if (!mayReload) return { state: 'stale', reason: 'it has not read its config again (kill -HUP)' };
    try {
      await client.ask('POST', '/reload', {}, 0);
    } catch (error) {
      return { state: 'stale', reason: `it could not read its config again: ${messageOf(error)}` };
    }
    if (await this.#isFresh(client)) return { state: 'accepts' };
    return { state: 'stale', reason: `its config has other secrets than ${this.#store.name}` };
  }

  /** Uses by secret; null when no receiver has exactly the stored secrets. */
  async uses(): Promise<ReadonlyMap<string, SecretUse> | null> {
    const client = await this.#client();
    if (client === null) return null;
    const signing = await this.#signing(client);
    const secrets = this.#secrets();
    if (!this.#matches(signing, secrets)) return null;
    const { since } = signing;
    return new Map(signing.secrets.map((use, index) => [secrets[index] ?? '', { ...use, since }]));
  }

  async #client(): Promise<AdminClient | null> {
    const client = this.#loaded === null ? null : AdminClient.of(this.#loaded.config);
    return client !== null && (await client.isListening()) ? client : null;
  }

  async #isFresh(client: AdminClient): Promise<boolean> {
    return this.#matches(await this.#signing(client), this.#secrets());
  }

  /** Compares time and number only: the receiver does not reveal secrets. */
  #matches({ since, secrets }: ReceivingStatus['signing'], stored: readonly string[]): boolean {
    const isRead = since >= writtenAt(this.#store) && secrets.length === stored.length;
    return isRead && this.#store.read().every((secret) => stored.includes(secret));
  }

  async #signing(client: AdminClient): Promise<ReceivingStatus['signing']> {
    const { receiving } = await client.operations().status();
    return receiving?.signing ?? { since: 0, secrets: [] };
  }

  /** The secrets of the config, in its order. */
  #secrets(): readonly string[] {
    if (this.#loaded === null) return [];
    const { variable } = this.#store;
    const set = variable === null ? {} : { [variable]: this.#store.read().join(' ') };
    const { config } = loadConfig({
      file: this.#loaded.file,
      env: { ...this.#io.env, ...set },
      lenient: true,
    });
    return config.signing.secrets;
  }
}
