import type { Event } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import type { ForeignResult } from './foreign-event.ts';
import type { Matcher } from './selection.ts';

/**
 * The event; why there is none; `passed` for one the selection does not take, and `erased` for one whose key an erasure
 * has destroyed, or whose user was erased.
 */
export type Taken = ForeignResult | 'passed' | 'erased';

/** @param receivedAt null when nobody knows it */
export type Take = (event: Event, receivedAt: number | null) => Taken;

/** @param isErased events of erased users are not sent again */
export function takerOf(matches: Matcher, isErased: IsErased = () => false): Take {
  return (event, receivedAt) => {
    const match = matches(event, receivedAt);
    if (match === 'no') return 'passed';
    if (match === 'undated') return { ok: false, reason: 'nothing says when it was received' };
    return isErased(event) ? 'erased' : { ok: true, event };
  };
}
