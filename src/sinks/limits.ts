import type { SinkLimits } from '../core/sink.ts';
import { isRecord } from '../lib/parsed.ts';

const VERBS = ['open', 'send', 'close'] as const;
const COUNTS = ['batchCount', 'batchBytes', 'eventBytes', 'inFlight'] as const;
const TIMES = ['linger', 'sendTimeout'] as const;
/** Milliseconds; timers cannot hold much more. */
const LONGEST = 86_400_000;
const CHOICES = { order: ['user', 'none'], batchBy: ['destination', 'mixed'] } as const;

/** A frozen copy of the sink's limits, checked. @throws Error that says what of the contract is missing */
export function limitsOf(sink: unknown): SinkLimits {
  if (!isRecord(sink)) throw new Error('createSink does not return a sink');
  for (const verb of VERBS)
    if (typeof sink[verb] !== 'function') throw new Error(`the sink has no function ${verb}`);
  const { limits } = sink;
  if (!isRecord(limits)) throw new Error('the sink has no limits');
  for (const key of COUNTS) {
    const value = limits[key];
    if (typeof value !== 'number' || !(value >= 1))
      throw new Error(`limits.${key} must be a number of at least 1`);
  }
  for (const key of TIMES) {
    const value = limits[key];
    if (value !== undefined && !(typeof value === 'number' && value >= 0 && value <= LONGEST))
      throw new Error(`limits.${key} must be milliseconds, at most a day`);
  }
  for (const [key, choices] of Object.entries(CHOICES))
    if (!choices.some((choice) => choice === limits[key]))
      throw new Error(`limits.${key} must be ${choices.join(' or ')}`);
  return Object.freeze({ ...(limits as unknown as SinkLimits) });
}
