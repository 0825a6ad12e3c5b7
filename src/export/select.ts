import { SEALED_TYPE } from '../core/sealed-record.ts';
import type { RecordEnvelope } from '../core/archive-record.ts';
import type { ErasureLine, FileLine } from '../core/archive-manifest.ts';
import type { TableEntry, Tables } from '../tables/tables.ts';

/** Which records are wanted; null and an empty list mean all. Times are compared with `received_at`. */
export interface Selection {
  /** ISO 8601 in UTC with milliseconds, included. */
  readonly since: string | null;
  /** The same, not included. */
  readonly until: string | null;
  /** Beginnings of event types. */
  readonly types: readonly string[];
  readonly teams: readonly string[];
  readonly users: readonly string[];
}

/** True for event types that have documents of a table. */
export type TakesType = (eventType: string) => boolean;

export function isEverything({ since, until, types, teams, users }: Selection): boolean {
  return since === null && until === null && types.length + teams.length + users.length === 0;
}

export function isWanted(record: RecordEnvelope, selection: Selection, takes: TakesType): boolean {
  const { since, until, types, teams, users } = selection;
  const { received_at: at, event_type: type, team_id: team, user_id: user } = record;
  return (
    (since === null || at >= since) &&
    (until === null || at < until) &&
    isTypeWanted(type, types, takes) &&
    (teams.length === 0 || teams.includes(team ?? '')) &&
    (users.length === 0 || users.includes(user ?? ''))
  );
}

/** False when no record of the file is wanted, by its line in the manifest. */
export function canHoldWanted(
  { first_received_at: first, last_received_at: last, types: held }: FileLine | ErasureLine,
  { since, until, types }: Selection,
  takes: TakesType,
): boolean {
  if (since !== null && last !== null && last < since) return false;
  if (until !== null && first !== null && first >= until) return false;
  // The type of a sealed record is known only when it is opened.
  return Object.keys(held).some((type) => type === SEALED_TYPE || isTypeWanted(type, types, takes));
}

function isTypeWanted(type: string, types: readonly string[], takes: TakesType): boolean {
  return takes(type) && (types.length === 0 || types.some((wanted) => type.startsWith(wanted)));
}

/** The tables that an export makes, without those nested in them. @param named a table, several joined with commas, or `all` */
export function entriesNamed(tables: Tables, named: string): TableEntry[] {
  const entries =
    named === 'all' ? tables.ofEvents() : [...new Set(named.split(','))].map((name) => tables.entry(name));
  const documents = new Set(entries.map(({ definition }) => definition));
  return entries.filter(({ definition, document }) => definition === document || !documents.has(document));
}

/** Returns true for types of which one of the tables has rows. */
export function takenBy(tables: Tables, entries: readonly TableEntry[]): TakesType {
  return (type) => entries.some((entry) => tables.takes(entry, type));
}
