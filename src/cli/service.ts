import type { Config } from '../config/config.ts';
import { MillraceError } from '../core/errors.ts';
import { ServiceClient } from '../service/client.ts';
import { note, usageError, type Io } from './io.ts';
import { configOf } from './options.ts';

export interface ServiceFlags {
  readonly config?: string;
  readonly baseUrl?: string;
}

/**
 * The client that a config and the flags describe. The config may be absent altogether: address and key can also come
 * from MILLRACE_SERVICE_BASE_URL and MILLRACE_SERVICE_API_KEY.
 * @throws MillraceError usage when there is no address or no key
 */
export function openService(io: Io, flags: ServiceFlags): ServiceClient {
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

function serviceSettings(io: Io, { config }: ServiceFlags): Config['service'] {
  try {
    return configOf({ config }, io).config.service;
  } catch (error) {
    const optional =
      config === undefined && error instanceof MillraceError && error.code === 'config_missing';
    if (!optional) throw error;
    const { MILLRACE_SERVICE_BASE_URL: baseUrl, MILLRACE_SERVICE_API_KEY: apiKey } = io.env;
    const apiKeyHeader = io.env['MILLRACE_SERVICE_API_KEY_HEADER'];
    return {
      baseUrl: baseUrl ?? null,
      apiKey: apiKey ?? null,
      apiKeyHeader: apiKeyHeader ?? 'x-service-api-key',
    };
  }
}
