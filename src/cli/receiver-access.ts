import { request } from 'undici';
import type { Config } from '../config/config.ts';
import { CATALOGUE, MillraceError, messageOf, type ErrorCode } from '../core/errors.ts';
import { ownerFolder, readOwner } from '../journal/owner.ts';

/** How a command gets to the admin API of the receiver that runs here. */
export interface Access {
  /** Base URL. */
  readonly url: string;
  readonly token: string | null;
}

/**
 * What the receiver has left beside its journal; null when it has not, or has no admin API. It may have died since.
 * The token it made is preferred to `admin.token`: that one would be of use to whoever has taken its port.
 */
export function accessTo(config: Config): Access | null {
  const owner = readOwner(ownerFolder(config));
  const token = owner?.token ?? config.admin.token;
  if (owner !== null && owner.admin !== null) return { url: owner.admin, token };
  // Without a journal it may have had no folder to leave it in; the config says where it listens.
  const { enabled, host, port } = config.admin;
  if (config.acknowledge !== 'delivered' || !enabled) return null;
  return { url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, token };
}

/** Longest wait for an answer, milliseconds. */
const TIMEOUT = 30_000;

/**
 * Asks the admin API.
 * @param path below `/api`
 * @param patience milliseconds to the answer's beginning; 0 waits for ever
 * @throws MillraceError receiver_unreachable, or the receiver's own where that says what to do
 */
export async function ask<T>(
  { url: base, token }: Access,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
  patience = TIMEOUT,
): Promise<T> {
  const url = `${base}/api${path}`;
  try {
    const response = await request(url, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headersTimeout: patience,
      bodyTimeout: TIMEOUT,
    });
    const answer: unknown = await response.body.json();
    if (response.statusCode === 200) return answer as T;
    const { code, detail } = Object(answer) as { code?: string; detail?: string };
    throw errorOf(code, `${url}: ${detail ?? `status ${response.statusCode}`}`);
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    throw new MillraceError('receiver_unreachable', `${url}: ${messageOf(error)}`, { cause: error });
  }
}

function errorOf(code: string | undefined, detail: string): MillraceError {
  const known = code !== undefined && /^(erasure|audit)_/.test(code) && Object.hasOwn(CATALOGUE, code);
  return new MillraceError(known ? (code as ErrorCode) : 'receiver_unreachable', detail);
}
