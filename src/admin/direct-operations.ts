import { MillraceError } from '../core/errors.ts';
import type { Operations, ReceivingStatus, SinkStatus } from '../core/operations.ts';

/** What the operations see of a receiver that keeps nothing on disk. */
export interface DirectState {
  readonly lastSeq: number;
  readonly waiting: { readonly events: number; readonly bytes: number };
  cursors(): ReadonlyMap<string, number>;
}

/** The operations of a receiver with `acknowledge: delivered`: there is a status, and nothing kept to look at. */
export function directOperations(
  state: DirectState,
  pid: number,
  sinks: () => readonly SinkStatus[],
  receiving: () => ReceivingStatus,
): Operations {
  return {
    status: () =>
      Promise.resolve({
        pid,
        journal: {
          path: '(memory)',
          events: state.waiting.events,
          firstSeq: state.lastSeq - state.waiting.events + 1,
          lastSeq: state.lastSeq,
          bytes: state.waiting.bytes,
          maxBytes: 0,
          quarantined: 0,
          deadLetters: 0,
          damaged: 0,
          cursors: Array.from(state.cursors(), ([sink, seq]) => ({
            sink,
            seq,
            backlog: state.lastSeq - seq,
            backlogBytes: 0,
            backlogAge: 0,
          })),
        },
        sinks: sinks(),
        receiving: receiving(),
      }),
    listEvents: () => Promise.resolve([]),
    listHeads: () => Promise.resolve([]),
    account: nothingKept,
    listQuarantine: () => Promise.resolve([]),
    retryQuarantine: nothingKept,
    dropQuarantine: nothingKept,
    listDeadLetters: () => Promise.resolve([]),
    retryDeadLetters: nothingKept,
    dropDeadLetters: nothingKept,
    dropSink: nothingKept,
  };
}

function nothingKept(): Promise<never> {
  return Promise.reject(new MillraceError('usage', 'with acknowledge: delivered nothing is kept here'));
}
