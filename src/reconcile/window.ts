import { MillraceError } from '../core/errors.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A span of time of receipt, in milliseconds since the epoch; `until` is not part of it. Whole hours, UTC. */
export interface Window {
  readonly since: number;
  readonly until: number;
}

/**
 * The window of `--since` and `--until`, widened to whole hours, as which deliveries are counted. Absent: the last 24
 * hours, the current one included.
 * @param since and `until`: ISO 8601 days or date-times, UTC where they name no zone
 * @param now milliseconds since the epoch
 * @throws MillraceError usage
 */
export function parseWindow(since: string | undefined, until: string | undefined, now: number): Window {
  const end = until === undefined ? Math.floor(now / HOUR) * HOUR + HOUR : endOf(until);
  const begin = since === undefined ? end - DAY : instantOf('--since', since);
  const window = { since: Math.floor(begin / HOUR) * HOUR, until: Math.ceil(end / HOUR) * HOUR };
  if (window.until <= window.since) throw new MillraceError('usage', '--until must be after --since');
  return window;
}

function instantOf(flag: string, text: string): number {
  const hasZone = /^\d{4}-\d{2}-\d{2}$|(Z|[+-]\d{2}:?\d{2})$/.test(text);
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(hasZone ? text : `${text}Z`) : Number.NaN;
  if (Number.isNaN(at) || at < 0)
    throw new MillraceError(
      'usage',
      `${flag} ${text} is not a day or time such as 2026-11-21 or 2026-11-21T03:00Z`,
    );
  return at;
}

/** A day is all of that day. */
function endOf(until: string): number {
  const instant = instantOf('--until', until);
  return /^\d{4}-\d{2}-\d{2}$/.test(until) ? instant + DAY : instant;
}
