import type { Sink } from '../../src/core/sink.ts';

// A sink of a user's own that takes nothing: each event becomes a dead letter.

export function parseOptions(options: unknown): unknown {
  return options;
}

export function createSink(): Sink {
  return {
    limits: {
      batchCount: 10,
      batchBytes: 1e6,
      eventBytes: 1e6,
      inFlight: 1,
      order: 'user',
      batchBy: 'mixed',
    },
    open: () => Promise.resolve(),
    send: (batch) =>
      Promise.resolve(batch.map(() => ({ status: 'refused', code: 'made_up', reason: 'made up' }) as const)),
    close: () => Promise.resolve(),
  };
}
