import type { Clock } from '../../core/clock.ts';
import type { SinkTrouble } from '../../core/sink.ts';

/** A target has asked to be left alone. */
export interface Asked {
  /** Monotonic milliseconds. */
  readonly until: number;
  readonly trouble: SinkTrouble;
}

/** By clock, which is one in a process: a reload makes another sink, and what its targets have asked for still holds. */
const ALL = new WeakMap<Clock, Map<string, Asked>>();

/** By url. */
export function askedFor(clock: Clock): Map<string, Asked> {
  let asked = ALL.get(clock);
  if (asked === undefined) ALL.set(clock, (asked = new Map()));
  return asked;
}
