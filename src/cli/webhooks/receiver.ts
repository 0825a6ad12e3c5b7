import { loadConfig } from '../../config/load.ts';
import { messageOf } from '../../core/errors.ts';
import type { ReceivingStatus, SecretStatus } from '../../core/operations.ts';
import { AdminClient } from '../admin-client.ts';
import { writtenAt } from './secret-store.ts';
import type { Session } from './session.ts';

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

/** Makes the receiver read the stored secrets if needed; with --no-reload it is not reloaded. */
export async function acceptance(session: Session): Promise<Acceptance> {
  const { store } = session;
  const client = await clientOf(session);
  if (client === null) return { state: 'absent' };
  const isFresh = async (): Promise<boolean> => (await usesAt(client, session)) !== null;
  if (await isFresh()) return { state: 'accepts' };
  if (store.variable !== null)
    return {
      state: 'stale',
      reason: `it has not read ${store.name}: reload it (kill -HUP) if it runs beside that file and reads it as its .env, else restart it with it`,
    };
  if (!session.flags.reload)
    return { state: 'stale', reason: 'it has not read its config again (kill -HUP)' };
  try {
    await client.ask('POST', '/reload', {}, 0);
  } catch (error) {
    return { state: 'stale', reason: `it could not read its config again: ${messageOf(error)}` };
  }
  if (await isFresh()) return { state: 'accepts' };
  return { state: 'stale', reason: `its config has other secrets than ${store.name}` };
}

/** Uses by secret; null when no receiver has exactly the stored secrets. */
export async function usesOf(session: Session): Promise<ReadonlyMap<string, SecretUse> | null> {
  const client = await clientOf(session);
  return client === null ? null : usesAt(client, session);
}

async function clientOf({ loaded }: Session): Promise<AdminClient | null> {
  const client = loaded === null ? null : AdminClient.of(loaded.config);
  return client !== null && (await client.isListening()) ? client : null;
}

/** Compares time and number only: the receiver does not reveal secrets. */
async function usesAt(
  client: AdminClient,
  { store, loaded, io }: Session,
): Promise<ReadonlyMap<string, SecretUse> | null> {
  const { receiving } = await client.operations().status();
  const { since, secrets } = receiving?.signing ?? { since: 0, secrets: [] };
  const stored = store.read();
  const set = store.variable === null ? {} : { [store.variable]: stored.join(' ') };
  const config = loadConfig({ file: loaded?.file, env: { ...io.env, ...set }, lenient: true }).config;
  /** In the order of the config. */
  const own = config.signing.secrets;
  const isRead = since >= writtenAt(store) && secrets.length === own.length;
  if (!isRead || !stored.every((secret) => own.includes(secret))) return null;
  return new Map(secrets.map((use, index) => [own[index] ?? '', { ...use, since }]));
}
