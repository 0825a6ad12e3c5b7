import type { Selection } from '../core/journal.ts';
import type { Operations } from '../core/operations.ts';
import { ask, type Access } from './receiver-access.ts';

/** The operations of a running receiver, through its admin API. */
export function remoteOperations(access: Access): Operations {
  const call = <T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> =>
    ask(access, method, path, body);
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
