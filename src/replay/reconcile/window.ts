import { MillraceError } from '../../core/errors.ts';

const HOUR = 3_600_000;

/** A span of time of receipt, in milliseconds since the epoch; `until` is not part of it. Whole hours, UTC. */
export interface Window {
  readonly since: number;
  readonly until: number;
}

/**
 * The window of `--since` and `--until`, widened to whole hours, as which deliveries are counted. Absent: the last 24
 * hours, the current one included.
 * @param since and `until`: milliseconds since the epoch; null where they were not given
 * @param now milliseconds since the epoch
 * @throws MillraceError usage
 */
export function windowOf(since: number | null, until: number | null, now: number): Window {
  const end = until ?? Math.floor(now / HOUR) * HOUR + HOUR;
  const begin = since ?? end - 24 * HOUR;
  const window = { since: Math.floor(begin / HOUR) * HOUR, until: Math.ceil(end / HOUR) * HOUR };
  if (window.until <= window.since) throw new MillraceError('usage', '--until must be after --since');
  return window;
}
