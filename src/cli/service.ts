import type { Config } from '../config/config.ts';
import { ServiceClient } from '../service/client.ts';
import { note, usageError, type Io } from './io.ts';
import { configIfAny, type CommonFlags } from './config-options.ts';

export interface ServiceFlags extends CommonFlags {
  readonly baseUrl?: string;
}

/**
 * Runs `work` with the client that a config and the flags describe. The config may be absent altogether: address and key
 * can also come from MILLRACE_SERVICE_BASE_URL and MILLRACE_SERVICE_API_KEY.
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

/** Whose key is needed: the team's for its data, that of an organization or of teams for what is managed. */
type Bearer = 'team' | 'management';

function openService(io: Io, flags: ServiceFlags, bearer: Bearer): ServiceClient {
  const { baseUrl, apiKey, apiKeyHeader, managementKey, managementKeyHeader } = serviceSettings(io, flags);
  const address = flags.baseUrl ?? baseUrl;
  if (address === null)
    throw usageError('name the service: --base-url, service.baseUrl or MILLRACE_SERVICE_BASE_URL');
  if (bearer === 'team' && apiKey === null)
    throw usageError('set MILLRACE_SERVICE_API_KEY, or service.apiKey in the config');
  if (bearer === 'management' && managementKey === null)
    throw usageError('set MILLRACE_SERVICE_MANAGEMENT_KEY, or service.managementKey in the config');
  return new ServiceClient({
    baseUrl: address,
    ...(apiKey === null ? {} : { apiKey }),
    apiKeyHeader,
    ...(managementKey === null ? {} : { managementKey }),
    managementKeyHeader,
    signal: io.signal,
    onWarning: (message) => note(io, `warning: ${message}`),
  });
}

function serviceSettings(io: Io, flags: ServiceFlags): Config['service'] {
  const loaded = configIfAny(flags, io);
  if (loaded !== null) return loaded.config.service;
  const { env } = io;
  return {
    baseUrl: env['MILLRACE_SERVICE_BASE_URL'] || null,
    apiKey: env['MILLRACE_SERVICE_API_KEY'] || null,
    apiKeyHeader: env['MILLRACE_SERVICE_API_KEY_HEADER'] || 'x-service-api-key',
    managementKey: env['MILLRACE_SERVICE_MANAGEMENT_KEY'] || null,
    managementKeyHeader: env['MILLRACE_SERVICE_MANAGEMENT_KEY_HEADER'] || 'X-Management-Key',
  };
}
