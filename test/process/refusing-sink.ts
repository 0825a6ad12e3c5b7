import type { Sink } from '../../src/core/sink.ts';
import { LIMITS } from '../support/sink-limits.ts';

// A sink of a user's own that takes nothing: each event becomes a dead letter.

export function parseOptions(options: unknown): unknown {
  return options;
}

export function createSink(): Sink {
  return {
    limits: LIMITS,
    open: () => Promise.resolve(),
    send: (batch) =>
      Promise.resolve(batch.map(() => ({ status: 'refused', code: 'made_up', reason: 'made up' }) as const)),
    close: () => Promise.resolve(),
  };
}
