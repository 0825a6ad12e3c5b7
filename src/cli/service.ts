import { text } from 'node:stream/consumers';
import type { Config } from '../config/config.ts';
import { parseDocument } from '../config/parse.ts';
import { ServiceClient } from '../history/service/client.ts';
import type { PathName } from '../history/service/paths.ts';
import type { Retry } from '../history/service/options.ts';
import { aboutDuration } from '../lib/units.ts';
import { note, usageError, type Io } from './io.ts';
import { type ConfigFlags, configIfAny } from './config-options.ts';
import { type OptionsOf, readAs, repeated, textOf } from './options.ts';

const KEY_HEADER = 'HTTP header of the service key';
const BASE_URL = { '--base-url <url>': 'address of the service' };
const SERVICE_PATH = {
  '--service-path <operation=path>': repeated('path of an operation of the service, as in service.paths'),
};

/** For commands that use the team's key of the service, or a management key. */
export const SERVICE_OPTIONS = { ...BASE_URL, '--api-key-header <name>': KEY_HEADER, ...SERVICE_PATH };
export const MANAGEMENT_OPTIONS = {
  ...BASE_URL,
  '--management-key-header <name>': KEY_HEADER,
  ...SERVICE_PATH,
};

export type ServiceFlags = ConfigFlags &
  Partial<OptionsOf<typeof SERVICE_OPTIONS & typeof MANAGEMENT_OPTIONS>> & {
    /** Requests a second. */
    readonly maxRate?: number | undefined;
  };

/**
 * Runs `work` with a client of the service, by the flags and the config. Without a config the variables of its keys count,
 * such as MILLRACE_SERVICE_BASE_URL.
 * @throws MillraceError usage when there is no address or no key
 */
export async function withService<T>(
  io: Io,
  flags: ServiceFlags,
  work: (service: ServiceClient) => Promise<T>,
  bearer: Bearer = 'team',
): Promise<T> {
  const service = openService(io, flags, bearer);
  try {
    return await work(service);
  } finally {
    await service.close().catch(() => undefined);
  }
}

/** How a command line names users. */
interface UserFlags {
  readonly user: readonly string[];
  readonly usersFile?: string | undefined;
  readonly allUsers?: boolean | undefined;
}

/** True when the command line names no users: it means all of them. */
export function isOfAll({ user, usersFile }: UserFlags): boolean {
  return user.length === 0 && usersFile === undefined;
}

/** Users of --user, of --users-file (`-` is standard input), and with --all-users every user of the service. */
export async function usersOf(io: Io, flags: UserFlags, service: ServiceClient): Promise<string[]> {
  const { user, usersFile, allUsers } = flags;
  const users = [...user];
  if (usersFile !== undefined) {
    const listed = usersFile === '-' ? await text(io.stdin) : readAs('--users-file', usersFile, textOf);
    users.push(...listed.split(/\s+/).filter(Boolean));
  }
  if (allUsers === true)
    for await (const { user_id: id } of service.users.all({ pageSize: 500 }, { signal: io.signal }))
      users.push(id);
  return users;
}

/** The key to use: the team's for data, a management key for webhooks and users. */
type Bearer = 'team' | 'management';

function openService(io: Io, flags: ServiceFlags, bearer: Bearer): ServiceClient {
  const { baseUrl, paths, ...keys } = serviceSettings(io, flags);
  const address = flags.baseUrl ?? baseUrl;
  if (address === null)
    throw usageError('name the service: --base-url, service.baseUrl or MILLRACE_SERVICE_BASE_URL');
  if (bearer === 'team' && keys.apiKey === null)
    throw usageError('set MILLRACE_SERVICE_API_KEY, or service.apiKey in the config');
  if (bearer === 'management' && keys.managementKey === null)
    throw usageError('set MILLRACE_SERVICE_MANAGEMENT_KEY, or service.managementKey in the config');
  return new ServiceClient({
    ...keys,
    apiKeyHeader: flags.apiKeyHeader ?? keys.apiKeyHeader,
    managementKeyHeader: flags.managementKeyHeader ?? keys.managementKeyHeader,
    baseUrl: address,
    paths: { ...paths, ...pathsOf(flags) },
    perSecond: flags.maxRate,
    signal: io.signal,
    onWarning: (message) => note(io, `warning: ${message}`),
    onRetry: retryNotes(io),
  });
}

/** Shorter pauses are not reported. */
const SHORTEST_PAUSE_MS = 1000;
const BETWEEN_NOTES_MS = 10_000;

/** Reports at most every ten seconds that the service is silent or asks for a pause. */
export function retryNotes(io: Io): (retry: Retry) => void {
  let [last, until] = [-Infinity, -Infinity];
  return ({ code, delayMs, reason }) => {
    const now = performance.now();
    const isShort = delayMs < SHORTEST_PAUSE_MS && code !== 'timed_out';
    // A pause that ends much later than the reported one is reported too.
    const isKnown = now - last < BETWEEN_NOTES_MS && now + delayMs < until + BETWEEN_NOTES_MS;
    if (isShort || isKnown) return;
    last = now;
    until = now + delayMs;
    note(io, `${reason}; again in ${aboutDuration(delayMs)}`);
  };
}

/** @throws MillraceError usage */
function pathsOf({ servicePath = [] }: ServiceFlags): Partial<Record<PathName, string>> {
  const entries = servicePath.map((setting) => {
    const [, name, path] = /^(\w+)=(.+)$/.exec(setting) ?? [];
    if (name === undefined) throw usageError(`--service-path ${setting}: write it as operation=path`);
    return [name, path];
  });
  return Object.fromEntries(entries) as Partial<Record<PathName, string>>;
}

/** @throws MillraceError usage for a variable with an invalid value */
export function serviceSettings(io: Io, flags: ConfigFlags): Config['service'] {
  const loaded = configIfAny(flags, io);
  if (loaded !== null) return loaded.config.service;
  const { values, problems } = parseDocument({}, io.env);
  const wrong = problems.find(({ path }) => path[0] === 'service');
  if (wrong !== undefined) throw usageError(`${wrong.path.join('.')}: ${wrong.message}`);
  return values.service;
}
