import { secretPlaces } from '../../config/secrets.ts';
import type { LoadedConfig } from '../../config/config.ts';
import { splitSecrets } from '../../core/secrets.ts';
import type { ServiceClient } from '../../history/service/client.ts';
import { ServiceError } from '../../history/service/errors.ts';
import type { Webhook } from '../../history/service/webhooks.ts';
import { configIfAny } from '../config-options.ts';
import { usageError, type Io } from '../io.ts';
import { withService } from '../service.ts';
import type { StoreFlags, TeamFlags } from './options.ts';
import { SecretRecords } from './secret-records.ts';
import { fileStore, fixedStore, variableStore, type SecretStore } from './secret-store.ts';

/** The webhooks of one team at the service. */
export interface Team {
  readonly id: string;
  readonly service: ServiceClient;
}

/** A team and its stored secrets. */
export interface Session extends Team {
  readonly store: SecretStore;
  readonly records: SecretRecords;
  /** The config of the receiver on this machine; null without one. */
  readonly loaded: LoadedConfig | null;
  readonly io: Io;
  readonly flags: StoreFlags;
}

/** Runs `work` with the team of the flags, the config or the key. */
export function withTeam<T>(io: Io, flags: TeamFlags, work: (team: Team) => Promise<T>): Promise<T> {
  const loaded = configIfAny(flags, io);
  return withService(
    io,
    flags,
    async (service) => work({ service, id: flags.team ?? (await teamOf(service, loaded)) }),
    'management',
  );
}

/** The same for commands that change secrets. @throws MillraceError folder_in_use while another command does */
export async function withSession<T>(
  io: Io,
  flags: StoreFlags,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const loaded = configIfAny(flags, io);
  const store = storeOf(io, flags, loaded);
  return withTeam(io, flags, async (team) => {
    const records = await SecretRecords.open(store);
    return await work({ ...team, store, records, loaded, io, flags }).finally(() => records.release());
  });
}

async function teamOf(service: ServiceClient, loaded: LoadedConfig | null): Promise<string> {
  const allowed = loaded?.config.envelope.teams ?? [];
  if (allowed.length === 1) return allowed[0] ?? '';
  const { data } = await service.webhooks.teams();
  const [only] = data;
  if (only !== undefined && data.length === 1) return only.id;
  throw usageError(`name the team with --team: the key reaches ${data.length} teams`);
}

const ADVICE = `put "secrets: ['\${file:./webhook-secret}']" under signing in the config, or name a file with --secret-file`;

function storeOf(io: Io, flags: StoreFlags, loaded: LoadedConfig | null): SecretStore {
  if (flags.secretFile !== undefined) return fileStore(flags.secretFile);
  if (loaded === null) throw usageError('name the secrets: --config FILE, or --secret-file FILE');
  const { scheme } = loaded.config.signing;
  if (scheme !== 'standard-webhooks')
    throw usageError(`signing.scheme is ${scheme}, but the service signs by standard-webhooks`);
  const places = secretPlaces(loaded.file);
  const file = places.find(({ kind }) => kind === 'file');
  if (file?.kind === 'file') return fileStore(file.path);
  const variable = places.find(({ kind }) => kind === 'variable');
  if (variable?.kind === 'variable') return checkedVariable(io, flags, variable.name);
  throw usageError(`signing.secrets names no file or variable that a secret can be written to: ${ADVICE}`);
}

/** Checks that the file sets the variable. */
function checkedVariable(io: Io, { envFile, keepSecret }: StoreFlags, name: string): SecretStore {
  const store = variableStore(envFile ?? '.env', name);
  const stored = store.read();
  const set = splitSecrets(io.env[name] ?? '');
  if (envFile !== undefined || set.every((secret) => stored.includes(secret))) return store;
  if (keepSecret === true) return fixedStore(store.path, name, set);
  throw usageError(`${name} is not set by .env: name the file that sets it with --env-file, or ${ADVICE}`);
}

/** Finds a webhook by id or address, or the only one. @throws MillraceError usage */
export async function findWebhook({ service, id: team }: Team, wanted: string | undefined): Promise<Webhook> {
  const { data } = await service.webhooks.list(team);
  const found = wanted === undefined ? data : data.filter(({ id, url }) => id === wanted || url === wanted);
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  const what = wanted === undefined ? 'webhooks' : `webhooks with the id or address ${wanted}`;
  throw usageError(`the team has ${found.length} ${what}${found.length > 1 ? ': name one by its id' : ''}`);
}

/** The secret that the service signs with; null when the service does not show it. */
export async function secretAtService({ service, id }: Team, webhook: string): Promise<string | null> {
  try {
    const { secret } = await service.webhooks.secret(id, webhook);
    return typeof secret === 'string' ? secret : null;
  } catch (error) {
    const hidden = error instanceof ServiceError && [403, 404, 405].includes(error.status ?? 0);
    if (hidden) return null;
    throw error;
  }
}
