import type { Envelope, Event } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import { isUuid } from '../lib/uuid.ts';
import type { ForeignResult } from './foreign-event.ts';

/** Which events a replay takes. Empty lists take all; times are milliseconds since the epoch. */
export interface Selection {
  /** Beginnings of event types. */
  readonly types: readonly string[];
  readonly teams: readonly string[];
  readonly users: readonly string[];
  /** Received at this time or later. */
  readonly since: number | null;
  /** Received before this time. */
  readonly until: number | null;
}

/** A UUID is the same in either case; another id is not. */
export function lowerUuid(id: string): string {
  return isUuid(id) ? id.toLowerCase() : id;
}

/** `undated`: all but the time is as asked for, and nobody knows the time. */
export type Match = 'yes' | 'no' | 'undated';

/** @param receivedAt null when nobody knows it */
export type Matcher = (envelope: Envelope, receivedAt: number | null) => Match;

export function compileSelection(selection: Selection): Matcher {
  const { types, since, until } = selection;
  const teams = idSet(selection.teams);
  const users = idSet(selection.users);
  return ({ type, team, user }, receivedAt) => {
    if (types.length > 0 && !types.some((prefix) => type.startsWith(prefix))) return 'no';
    if (teams !== null && (team === null || !teams.has(lowerUuid(team)))) return 'no';
    if (users !== null && (user === null || !users.has(lowerUuid(user)))) return 'no';
    if (since === null && until === null) return 'yes';
    if (receivedAt === null) return 'undated';
    return receivedAt >= (since ?? receivedAt) && receivedAt < (until ?? Infinity) ? 'yes' : 'no';
  };
}

function idSet(ids: readonly string[]): ReadonlySet<string> | null {
  return ids.length === 0 ? null : new Set(ids.map(lowerUuid));
}

/**
 * The event; why there is none; `passed` for one the selection does not take, and `erased` for one whose key an erasure
 * has destroyed, or whose user was erased.
 */
export type Taken = ForeignResult | 'passed' | 'erased';

/** @param receivedAt null when nobody knows it */
export type Take = (event: Event, receivedAt: number | null) => Taken;

/** @param isErased events of erased users are not sent again */
export function takerOf(selection: Selection, isErased: IsErased = () => false): Take {
  const matches = compileSelection(selection);
  return (event, receivedAt) => {
    const match = matches(event, receivedAt);
    if (match === 'no') return 'passed';
    if (match === 'undated') return { ok: false, reason: 'nothing says when it was received' };
    return isErased(event) ? 'erased' : { ok: true, event };
  };
}
