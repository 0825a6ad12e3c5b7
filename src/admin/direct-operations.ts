import { MillraceError } from '../core/errors.ts';
import type { EventStore } from '../core/journal.ts';
import { NO_ROUTES } from '../core/route-record.ts';
import type { Operations } from '../core/operations.ts';
import { nothingRemembered, type OperationsOptions } from './operations.ts';

/** The operations of a receiver with `acknowledge: delivered`: there is a status, and nothing kept to look at. */
export function directOperations(
  store: Pick<EventStore, 'status'>,
  {
    pid,
    sinks,
    receiving,
    earlier,
  }: Required<Pick<OperationsOptions, 'pid' | 'sinks' | 'receiving' | 'earlier'>>,
): Operations {
  return {
    status: async () => {
      const journal = await store.status();
      return { pid, journal, sinks: sinks(), receiving: receiving(), earlier: earlier() };
    },
    listEvents: () => Promise.resolve([]),
    listHeads: () => Promise.resolve([]),
    account: nothingKept,
    listQuarantine: () => Promise.resolve([]),
    retryQuarantine: nothingKept,
    dropQuarantine: nothingKept,
    listDeadLetters: () => Promise.resolve([]),
    retryDeadLetters: nothingKept,
    dropDeadLetters: nothingKept,
    listEntries: () => Promise.resolve([]),
    dropSink: nothingKept,
    routes: () => Promise.resolve(NO_ROUTES),
    schema: async () => nothingRemembered(),
  };
}

function nothingKept(): Promise<never> {
  return Promise.reject(new MillraceError('usage', 'with acknowledge: delivered nothing is kept here'));
}
