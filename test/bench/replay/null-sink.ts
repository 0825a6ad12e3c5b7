import { DELIVERED, type Sink } from '../../../src/core/sink.ts';

// A sink that takes everything and keeps nothing: what is left is the reading.

export function parseOptions(): object {
  return {};
}

export function createSink(): Sink {
  return {
    limits: {
      batchCount: 1000,
      batchBytes: 8e6,
      eventBytes: Number.POSITIVE_INFINITY,
      inFlight: 4,
      order: 'none',
      batchBy: 'mixed',
    },
    open: () => Promise.resolve(),
    send: (batch) => Promise.resolve(batch.map(() => DELIVERED)),
    close: () => Promise.resolve(),
  };
}
