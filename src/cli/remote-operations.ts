import { request } from 'undici';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { Selection } from '../core/journal.ts';
import type { Operations } from '../core/operations.ts';

const TIMEOUT = 30_000;

/** The operations of a running receiver, through its admin API. */
export function remoteOperations(base: string, token: string | null): Operations {
  const call = async <T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> => {
    const headers: Record<string, string> = {};
    if (token !== null) headers['authorization'] = `Bearer ${token}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const url = `${base}/api${path}`;
    try {
      const response = await request(url, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        headersTimeout: TIMEOUT,
        bodyTimeout: TIMEOUT,
      });
      const answer: unknown = await response.body.json();
      if (response.statusCode === 200) return answer as T;
      const detail = (answer as { detail?: string }).detail ?? `status ${response.statusCode}`;
      throw new MillraceError('receiver_unreachable', `${url}: ${detail}`);
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      throw new MillraceError('receiver_unreachable', `${url}: ${messageOf(error)}`, { cause: error });
    }
  };
  const list = <T>(path: string, selection: Selection, bodies: boolean): Promise<T> => {
    const query = new URLSearchParams(bodies ? { bodies: 'true' } : {});
    for (const [key, value] of Object.entries(selection)) query.set(key, String(value));
    return call('GET', `${path}?${query.toString()}`);
  };
  const drop = async (path: string, selection: Selection): Promise<number> =>
    (await call<{ dropped: number }>('POST', path, selection)).dropped;
  return {
    status: () => call('GET', '/status'),
    listEvents: (selection) => list('/events', selection, true),
    listHeads: (after) => call('GET', `/heads?after=${after}`),
    account: (since, until) => call('GET', `/account?since=${since}&until=${until}`),
    listQuarantine: (selection, bodies) => list('/quarantine', selection, bodies),
    retryQuarantine: (selection) => call('POST', '/quarantine/retry', selection),
    dropQuarantine: (selection) => drop('/quarantine/drop', selection),
    listDeadLetters: (selection, bodies) => list('/dead-letters', selection, bodies),
    retryDeadLetters: (selection) => call('POST', '/dead-letters/retry', selection),
    dropDeadLetters: (selection) => drop('/dead-letters/drop', selection),
    dropSink: (sink) => call('POST', '/sinks/drop', { sink }),
  };
}
