import { systemClock, type Clock } from '../../core/clock.ts';
import { ServiceInputError, type ServiceErrorCode } from './errors.ts';
import { resolvePaths, type Paths } from './paths.ts';

/** How to reach the service. `baseUrl` and a key are required. */
export interface ServiceOptions {
  /** `https://…`, with a path when the service lives below one. */
  readonly baseUrl: string;
  /** The team API key. */
  readonly apiKey?: string | null;
  /** Default `x-service-api-key`. */
  readonly apiKeyHeader?: string | undefined;
  /** An Org or Team Management Key, for the `webhooks` group. */
  readonly managementKey?: string | null;
  /** Default `X-Management-Key`. The deprecated `X-Service-Org-Key` works, with a warning. */
  readonly managementKeyHeader?: string | undefined;
  readonly paths?: Partial<Paths>;
  /** Milliseconds until the first byte of an answer, on the system clock. Default 60 s. */
  readonly headersTimeout?: number;
  /** Attempts at a call; 1 never retries. Default 6. */
  readonly attempts?: number;
  /** Most requests in any second; they may be sent at once. Default: no limit. */
  readonly perSecond?: number | undefined;
  /** Sockets open at once. Default 16. */
  readonly connections?: number;
  /** Aborts calls in flight, and refuses new ones. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  /** Jitter, in [0, 1). Default Math.random. */
  readonly random?: () => number;
  /** Called for deprecated settings. */
  readonly onWarning?: (message: string) => void;
  /** Called before each retry. */
  readonly onRetry?: (retry: Retry) => void;
}

/** An attempt that failed and will be retried. */
export interface Retry {
  readonly operation: string;
  /** The attempt that failed, from 1. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly code: ServiceErrorCode;
  readonly reason: string;
}

/** Options of any one call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Options of a call that reads reference data. */
export interface ReadOptions extends CallOptions {
  /** Called with the text of the answer: parsed, `1.10` becomes `1.1`, and 12345678901234567890 another number. */
  readonly onText?: (text: string) => void;
}

export type ResolvedOptions = ReturnType<typeof resolveOptions>;

/** Checks the options and fills in defaults. @throws ServiceInputError naming the option */
export function resolveOptions(options: ServiceOptions) {
  const { managementKeyHeader = 'X-Management-Key' } = options;
  if (managementKeyHeader.toLowerCase() === 'x-service-org-key') {
    options.onWarning?.('the header X-Service-Org-Key is deprecated; use X-Management-Key');
  }
  return {
    base: baseOf(options.baseUrl),
    apiKey: key('apiKey', options.apiKey),
    apiKeyHeader: headerName('apiKeyHeader', options.apiKeyHeader ?? 'x-service-api-key'),
    managementKey: key('managementKey', options.managementKey),
    managementKeyHeader: headerName('managementKeyHeader', managementKeyHeader),
    paths: resolvePaths(options.paths ?? {}),
    headersTimeout: options.headersTimeout ?? 60_000,
    attempts: options.attempts ?? 6,
    perSecond: options.perSecond,
    connections: options.connections ?? 16,
    signal: options.signal,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    onRetry: options.onRetry,
  };
}

function baseOf(text: string): { readonly origin: string; readonly path: string } {
  const url = URL.canParse(text) ? new URL(text) : null;
  const more = url === null ? '' : url.search + url.hash + url.username;
  if (url === null || !/^https?:$/.test(url.protocol) || more !== '') {
    throw new ServiceInputError('baseUrl', 'must be an http(s) URL without query, fragment or user name');
  }
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') };
}

function headerName(parameter: string, name: string): string {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new ServiceInputError(parameter, 'must be a header name');
  return name;
}

/** Errors do not quote the value, which is a secret. */
function key(parameter: string, value: string | null = null): string | null {
  if (value === null) return null;
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new ServiceInputError(parameter, 'must be visible ASCII without spaces, and not empty');
  }
  return value;
}
