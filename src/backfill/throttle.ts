import { parseDuration } from '../lib/units.ts';

/** How fast the service works triggers off: so many connections in so many milliseconds; 0 is at once. */
export interface TriggerRate {
  readonly connections: number;
  readonly everyMs: number;
}

/** The service's rate for every provider it does not name: 8 connections a minute. */
export const USUAL_RATE: TriggerRate = { connections: 8, everyMs: 60_000 };

/** Milliseconds the service needs for so many triggers; an honest estimate, since it says its rates. */
export function triggerTime(connections: number, { connections: batch, everyMs }: TriggerRate): number {
  return Math.ceil(connections / batch) * everyMs;
}

/** Reads `provider=150/5m` or `provider=250` (so many at a time, no pause). @throws RangeError when it is neither */
export function parseRate(text: string): [provider: string, rate: TriggerRate] {
  const [, provider, connections = '0', every = '0'] = /^([a-z0-9_-]+)=(\d+)(?:\/(\w+))?$/.exec(text) ?? [];
  if (provider === undefined || Number(connections) < 1)
    throw new RangeError('must be like provider=150/5m or provider=250');
  return [provider, { connections: Number(connections), everyMs: parseDuration(every) }];
}
