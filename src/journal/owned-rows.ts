import type Database from 'better-sqlite3';
import type { Owners } from '../core/erasure.ts';
import { USER_MALFORMED } from '../core/ingest.ts';
import { allKnownBy, bodyHashOf } from './identity.ts';
import type { AsideTable } from './schema.ts';
import type { KnownBy } from './segments/format.ts';

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

/** Where the envelope does not say whose an event is: what stands as the user of an invalid one may be no id. */
const NAMES_NOBODY: Readonly<Record<AsideTable, string>> = {
  dead_letters: 'user IS NULL',
  // Nor what stands in a record that is not what was written.
  quarantine: `user IS NULL OR reasons LIKE '%"${USER_MALFORMED}"%' OR reasons LIKE '%"damaged"%'`,
};

/** By what rows may be known as they came in. */
export function rowsKnownBy(db: Database.Database, table: AsideTable, keys: readonly number[]): KnownBy[] {
  const select = db.prepare(`SELECT source, id, user, type, body FROM ${table} WHERE key = ?`).raw();
  return keys.flatMap((key) => {
    const [source, id, user, type, body] = select.get(key) as [string, string, string | null, string, Buffer];
    return allKnownBy({ source, id, user, type, bodyHash: bodyHashOf(body) });
  });
}

/** The subjects' rows among the next `count` ones, and the last key looked at; null when there were no more. */
export function ownedRows(
  db: Database.Database,
  owners: Owners,
  table: AsideTable,
  after: number,
  count: number,
): { owned: { key: number; requests: readonly string[] }[]; last: number | null } {
  // A body is read only where the envelope does not say whose it is: bodies are nearly all of the file.
  const rows = db
    .prepare(
      `SELECT key, team, user, client_user, id, headers, CASE WHEN ${NAMES_NOBODY[table]} THEN body END
       FROM ${table} WHERE key > ? ORDER BY key LIMIT ${count}`,
    )
    .raw()
    .iterate(after) as IterableIterator<Row>;
  const owned: { key: number; requests: readonly string[] }[] = [];
  let last: number | null = null;
  // Row by row: a slice of large bodies would not fit in memory.
  for (const [at, team, user, clientUser, id, headers, body] of rows) {
    const whose = { team, user, clientUser };
    const requests =
      body === null
        ? owners.of(whose)
        : owners.ofEvent({ ...whose, id, headers: { all: headers }, body }, true);
    if (requests.length > 0) owned.push({ key: at, requests });
    last = at;
  }
  return { owned, last };
}
