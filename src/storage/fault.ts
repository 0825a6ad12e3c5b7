import type { StorageFault } from '../core/storage.ts';

/** What a status means where the store says no more; none is no answer at all: sockets, names, time-outs. */
export function faultByStatus(status: number | undefined): StorageFault {
  if (status === undefined) return 'unreachable';
  if (status === 429 || status === 503) return 'busy';
  // 2xx: an answer that was cut off, or is not the store's.
  if (status >= 500 || status === 408 || status < 300) return 'unreachable';
  if (status === 401 || status === 403) return 'denied';
  if (status === 404) return 'missing';
  if (status === 409) return 'busy';
  return status === 412 ? 'changed' : 'invalid';
}

/** What an error is called; by its status where the answer has no words of its own, as those of proxies have not. */
export function sayOf(line: string, status: number | undefined): string {
  const isMute = line.trim() === '' || line === 'UnknownError';
  return isMute && status !== undefined ? `HTTP ${status}` : line;
}
