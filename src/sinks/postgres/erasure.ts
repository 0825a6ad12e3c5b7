import {
  leftItemOf,
  Owners,
  type ErasableStore,
  type ErasureRun,
  type Ownership,
} from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import { inTransaction } from '../../tables/database/database.ts';
import { ledgerIn, PULLS } from '../../tables/database/ledger.ts';
import { tableName } from '../../tables/sql/dialects/dialect.ts';
import { WHOLE_PULLS } from '../../tables/sql/vanished.ts';
import { hashed } from '../../tables/sql/dialects/postgres.ts';
import { nameOf, type Connection } from '../../vendors/postgres/connection.ts';
import { PostgresDatabase } from './database.ts';
import { faultOf } from '../../vendors/postgres/failure.ts';

/** Rows without a user that are searched at a time. */
const PIECE = 500;

/**
 * The rows of a schema, for an erasure. It removes the rows whose team and user are the subject's, and the rows without a user that
 * name the subject anywhere. Each table is a transaction, noted before others can see it.
 * @param options may throw; then nothing is erased, and the run names what is left
 */
export function erasureOf(
  { connectionString, schema = 'public' }: Readonly<Record<string, unknown>>,
  options: () => Connection,
): ErasableStore {
  const where = typeof connectionString === 'string' ? ` at ${nameOf(connectionString)}` : '';
  // Removed rows are noted by this name, which must differ between schemas.
  const name = `PostgreSQL${where}, schema ${String(schema)}`;
  const erase = async (run: ErasureRun): Promise<void> => {
    let database: PostgresDatabase | null = null;
    try {
      const opened = (database = await PostgresDatabase.open(options(), run.signal));
      opened.endWith(run.signal);
      for (const table of await inTransaction(opened, () => tablesIn(opened))) {
        run.signal.throwIfAborted();
        await inTransaction(opened, () => eraseFrom(opened, table, name, run));
        run.onStep('erased rows');
      }
    } catch (error) {
      if (run.signal.aborted) throw error;
      run.leave(leftItemOf(name, 'rows', run.subjects, new Error(faultOf(error).reason)));
    } finally {
      await database?.close();
    }
  };
  return { name, erase };
}

async function eraseFrom(
  database: PostgresDatabase,
  table: OwnedTable,
  store: string,
  run: ErasureRun,
): Promise<void> {
  const owners = new Owners(run.subjects);
  const removed: Record<string, number> = {};
  const count = (requests: readonly string[], rows: number): void => {
    for (const request of requests) removed[request] = (removed[request] ?? 0) + rows;
  };
  const { name, quoted } = table;
  for (const ownership of await ownershipsIn(database, table)) {
    const requests = owners.of(ownership);
    if (requests.length > 0) count(requests, await deleteOwned(database, table, ownership));
  }
  for await (const { ctid, team, bytes } of rowsWithoutUser(database, table)) {
    run.searched(bytes.length);
    const requests = owners.named(bytes, team);
    if (requests.length === 0) continue;
    await database.query(`DELETE FROM ${quoted} WHERE ctid = $1::tid`, [ctid]);
    count(requests, 1);
  }
  const known = run.recorded.filter((item) => item.store === store && item.item === name);
  const fresh = Object.entries(removed).filter(([request]) => !known.some((item) => request in item.removed));
  if (fresh.length === 0) return;
  const item = { store, item: name, removed: Object.fromEntries(fresh) };
  await run.record({ ...item, sha256_before: null, sha256_after: null });
}

interface OwnedTable {
  readonly name: string;
  readonly quoted: string;
  /** One of the columns that say whose a row is; NULL in a table without it. */
  readonly column: (name: string) => string;
}

/**
 * The tables of this ledger that have a column for the user, and those of pulls; none where nothing was loaded.
 * @throws MillraceError database_refused when the rest of a ledger is there without its list of tables
 */
async function tablesIn(database: PostgresDatabase): Promise<OwnedTable[]> {
  const { tables } = ledgerIn(database);
  const [ledger] = await database.query(
    `SELECT to_regclass($1) IS NOT NULL, EXISTS (SELECT FROM pg_catalog.pg_class
       JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
       WHERE nspname = $2 AND starts_with(relname::text, '_millrace_'))`,
    [tables, database.sql.schema],
  );
  if (ledger?.[0] !== true) {
    if (ledger?.[1] === false) return [];
    throw new MillraceError(
      'database_refused',
      'it has tables _millrace_… and no table _millrace_tables, so which tables to search is not known: restore it from a backup, or drop the others if no rows are left',
    );
  }
  // information_schema would hide tables that the database user has no rights to.
  const rows = await database.query(
    `SELECT relname, string_agg(attname, ',') FROM pg_catalog.pg_class
       JOIN pg_catalog.pg_attribute ON attrelid = pg_class.oid AND attname IN ('team_id', 'user_id', 'client_user_id')
     WHERE relnamespace = $1::regnamespace AND (relname IN ($2, $3) OR relname IN (SELECT name FROM ${tables}))
     GROUP BY relname HAVING bool_or(attname = 'user_id') ORDER BY relname`,
    [database.sql.quote(database.sql.schema), PULLS, WHOLE_PULLS.name],
  );
  return rows.map(([text, columns]) => {
    const [name, owning] = [String(text), String(columns).split(',')];
    const column = (one: string): string => (owning.includes(one) ? one : 'NULL::text');
    return { name, quoted: tableName(database.sql, name), column };
  });
}

async function ownershipsIn(database: PostgresDatabase, table: OwnedTable): Promise<Ownership[]> {
  const columns = ['team_id', 'user_id', 'client_user_id'].map(table.column);
  const rows = await database.query(`SELECT DISTINCT ${columns.join(', ')} FROM ${table.quoted}`);
  return rows.map(([team, user, clientUser]) => ({
    team: textOf(team),
    user: textOf(user),
    clientUser: textOf(clientUser),
  }));
}

async function deleteOwned(
  database: PostgresDatabase,
  { quoted, column }: OwnedTable,
  { team, user, clientUser }: Ownership,
): Promise<number> {
  const values: string[] = [];
  const same = (name: string, value: string | null): string => {
    const own = column(name);
    if (value === null) return `${own} IS NULL`;
    values.push(value);
    const text = `$${values.length}`;
    // The index has the hash; two users can have the same one.
    return `${hashed(own)} = ${hashed(text)} AND ${own} = ${text}`;
  };
  const where = [same('team_id', team), same('user_id', user), same('client_user_id', clientUser)];
  const rows = await database.query(
    `WITH gone AS (DELETE FROM ${quoted} WHERE ${where.join(' AND ')} RETURNING 1) SELECT count(*) FROM gone`,
    values,
  );
  return Number(rows[0]?.[0]);
}

interface RowWithoutUser {
  readonly ctid: string;
  readonly team: string | null;
  /** The row as JSON, and the decoded body in it. */
  readonly bytes: Buffer;
}

async function* rowsWithoutUser(
  database: PostgresDatabase,
  { quoted, column }: OwnedTable,
): AsyncGenerator<RowWithoutUser> {
  await database.run(
    `DECLARE unnamed_rows NO SCROLL CURSOR FOR
     SELECT ctid::text, ${column('team_id')}, row_to_json(rows_)::text FROM ${quoted} AS rows_ WHERE user_id IS NULL`,
  );
  for (;;) {
    const rows = await database.query(`FETCH ${PIECE} FROM unnamed_rows`);
    for (const [ctid, team, row] of rows) {
      const text = String(row);
      const [, base64] = /"body_base64":"([A-Za-z0-9+/=]+)"/.exec(text) ?? [];
      const body = base64 === undefined ? [] : [Buffer.from(base64, 'base64')];
      yield { ctid: String(ctid), team: textOf(team), bytes: Buffer.concat([Buffer.from(text), ...body]) };
    }
    if (rows.length < PIECE) break;
  }
  await database.run('CLOSE unnamed_rows');
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
