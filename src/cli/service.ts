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
): Promise<T> {
  const service = openService(io, flags);
  try {
    return await work(service);
  } finally {
    await service.close().catch(() => undefined);
  }
}

function openService(io: Io, flags: ServiceFlags): ServiceClient {
  const { baseUrl, apiKey, apiKeyHeader } = serviceSettings(io, flags);
  const address = flags.baseUrl ?? baseUrl;
  if (address === null)
    throw usageError('name the service: --base-url, service.baseUrl or MILLRACE_SERVICE_BASE_URL');
  if (apiKey === null) throw usageError('set MILLRACE_SERVICE_API_KEY, or service.apiKey in the config');
  return new ServiceClient({
    baseUrl: address,
    apiKey,
    apiKeyHeader,
    signal: io.signal,
    onWarning: (message) => note(io, `warning: ${message}`),
  });
}

function serviceSettings(io: Io, flags: ServiceFlags): Config['service'] {
  const loaded = configIfAny(flags, io);
  if (loaded !== null) return loaded.config.service;
  const { MILLRACE_SERVICE_BASE_URL: baseUrl, MILLRACE_SERVICE_API_KEY: apiKey } = io.env;
  const apiKeyHeader = io.env['MILLRACE_SERVICE_API_KEY_HEADER'] ?? 'x-service-api-key';
  return { baseUrl: baseUrl ?? null, apiKey: apiKey ?? null, apiKeyHeader };
}
