import { text } from 'node:stream/consumers';
import type { Config } from '../config/config.ts';
import { parseDocument } from '../config/parse.ts';
import { ServiceClient } from '../history/service/client.ts';
import type { PathName } from '../history/service/paths.ts';
import type { Retry } from '../history/service/options.ts';
import { formatAbout } from '../lib/units.ts';
import { note, usageError, type Io } from './io.ts';
import { type ConfigFlags, configIfAny } from './config-options.ts';
import { type OptionsOf, readAs, repeated, textOf } from './options.ts';

const KEY_HEADER = 'header that carries the key of the service';
const BASE_URL = { '--base-url <url>': 'address of the service' };
const SERVICE_PATH = {
  '--service-path <operation=path>': repeated(
    'path of an operation of the service, as in service.paths; may be repeated',
  ),
};

/** Of a command that talks to the service, as the bearer of the team's key or of a management key. */
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
 * Runs `work` with the client that a config and the flags describe. The config may be absent altogether: then the variables
 * of its keys, such as MILLRACE_SERVICE_BASE_URL, say the same.
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

/** How a command names users. */
export interface UserFlags {
  readonly user?: readonly string[] | undefined;
  readonly usersFile?: string | undefined;
  readonly allUsers?: boolean | undefined;
}

/** One by one, in a file (`-` is standard input), or every user that the service has. */
export async function usersOf(io: Io, flags: UserFlags, service: ServiceClient): Promise<string[]> {
  const { user = [], usersFile, allUsers } = flags;
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

/** Whose key is needed: the team's for its data, that of an organization or of teams for what is managed. */
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

/** Milliseconds of a pause that is told, and between two that are. */
const TOLD = 1000;
const BETWEEN = 10_000;

/** Says what a command waits for, now and then: a service that is silent, or wants to be left alone. */
export function retryNotes(io: Io): (retry: Retry) => void {
  let [last, until] = [-Infinity, -Infinity];
  return ({ code, delayMs, reason }) => {
    const now = performance.now();
    // A pause that goes on for long after the one that was told of is told of too.
    if ((delayMs < TOLD && code !== 'timed_out') || (now - last < BETWEEN && now + delayMs < until + BETWEEN))
      return;
    last = now;
    until = now + delayMs;
    note(io, `${reason}; again in ${formatAbout(delayMs)}`);
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

/** @throws MillraceError usage for a variable that is none of what its key takes */
function serviceSettings(io: Io, flags: ServiceFlags): Config['service'] {
  const loaded = configIfAny(flags, io);
  if (loaded !== null) return loaded.config.service;
  const { values, problems } = parseDocument({}, io.env);
  const wrong = problems.find(({ path }) => path[0] === 'service');
  if (wrong !== undefined) throw usageError(`${wrong.path.join('.')}: ${wrong.message}`);
  return values.service;
}
