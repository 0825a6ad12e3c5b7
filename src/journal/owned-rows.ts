import type Database from 'better-sqlite3';
import type { Owners } from '../core/erasure.ts';
import { USER_MALFORMED } from '../core/ingest.ts';
import { possibleHashes, bodyHashOf } from './identity.ts';
import type { AsideTable } from './schema.ts';
import type { EventHashes } from './segments/format.ts';

/** A row of a subject, and the erasure requests that cover it. */
export interface OwnedRow {
  readonly key: number;
  readonly requests: readonly string[];
}

type Row = [
  key: number,
  team: string | null,
  user: string | null,
  clientUser: string | null,
  id: string,
  headers: string,
  /** Null where the envelope says whose it is. */
  body: Buffer | null,
];

/** Rows whose envelope does not say whose the event is: the user of an invalid or damaged one may be no id. */
const OWNER_UNKNOWN: Readonly<Record<AsideTable, string>> = {
  dead_letters: 'user IS NULL',
  quarantine: `user IS NULL OR reasons LIKE '%"${USER_MALFORMED}"%' OR reasons LIKE '%"damaged"%'`,
};

export function hashesOfRows(
  db: Database.Database,
  table: AsideTable,
  keys: readonly number[],
): EventHashes[] {
  const select = db.prepare(`SELECT source, id, user, type, body FROM ${table} WHERE key = ?`).raw();
  return keys.flatMap((key) => {
    const [source, id, user, type, body] = select.get(key) as [string, string, string | null, string, Buffer];
    return possibleHashes({ source, id, user, type, bodyHash: bodyHashOf(body) });
  });
}

/** The subjects' rows among the next `count` ones, and the last key examined; null when there were no more. */
export function ownedRows(
  db: Database.Database,
  owners: Owners,
  table: AsideTable,
  after: number,
  count: number,
): { readonly owned: readonly OwnedRow[]; readonly last: number | null } {
  // A body is read only where the envelope does not say whose it is: bodies are nearly all of the file.
  const rows = db
    .prepare(
      `SELECT key, team, user, client_user, id, headers, CASE WHEN ${OWNER_UNKNOWN[table]} THEN body END
       FROM ${table} WHERE key > ? ORDER BY key LIMIT ${count}`,
    )
    .raw()
    .iterate(after) as IterableIterator<Row>;
  const owned: OwnedRow[] = [];
  let last: number | null = null;
  // Row by row: a slice of large bodies would be too much memory.
  for (const [key, team, user, clientUser, id, headers, body] of rows) {
    const whose = { team, user, clientUser };
    const requests =
      body === null
        ? owners.of(whose)
        : owners.ofEvent({ ...whose, id, headers: { all: headers }, body }, true);
    if (requests.length > 0) owned.push({ key, requests });
    last = key;
  }
  return { owned, last };
}
