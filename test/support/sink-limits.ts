import type { SinkLimits } from '../../src/core/sink.ts';

/** Of a sink of the tests' own. */
export const LIMITS: SinkLimits = {
  batchCount: 10,
  batchBytes: 1e6,
  eventBytes: 1e6,
  inFlight: 1,
  order: 'user',
  batchBy: 'mixed',
};
