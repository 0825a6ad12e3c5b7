import type { Envelope, Event } from '../core/event.ts';
import type { IsErased } from '../core/ingest.ts';
import { isUuid } from '../lib/uuid.ts';
import type { ForeignResult } from './foreign-event.ts';

/** The events that a replay takes. Empty lists match all; times are milliseconds since the epoch. */
export interface Selection {
  /** Prefixes of event types. */
  readonly types: readonly string[];
  readonly teams: readonly string[];
  readonly users: readonly string[];
  /** Received at this time or later. */
  readonly since: number | null;
  /** Received before this time. */
  readonly until: number | null;
}

/** Upper and lower case make no difference in a UUID, but in other ids. */
export function lowerUuid(id: string): string {
  return isUuid(id) ? id.toLowerCase() : id;
}

/** `undated`: all but the time matches, and the time is unknown. */
export type Match = 'yes' | 'no' | 'undated';

/** @param receivedAt null when it is unknown */
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

/** The event, or why it cannot be read; `other` when the selection does not match it, `erased` when its user was erased. */
export type SelectResult = ForeignResult | 'other' | 'erased';

/** @param receivedAt null when it is unknown */
export type Select = (event: Event, receivedAt: number | null) => SelectResult;

/** @param isErased events of erased users are not sent again */
export function selectorOf(selection: Selection, isErased: IsErased = () => false): Select {
  const matches = compileSelection(selection);
  return (event, receivedAt) => {
    const match = matches(event, receivedAt);
    if (match === 'no') return 'other';
    if (match === 'undated') return { ok: false, reason: 'nothing says when it was received' };
    return isErased(event) ? 'erased' : { ok: true, event };
  };
}
