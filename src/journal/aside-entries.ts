import type Database from 'better-sqlite3';
import type { Selection } from '../core/journal.ts';
import type { SetAsideEntry, SetAsideKind } from '../core/receipt.ts';
import { entryOfRow } from './receipt-entries.ts';

/** Bytes of bodies hashed in one step: some milliseconds of the writer thread. */
const STEP_BYTES = 4 * 2 ** 20;

type Row = [
  key: number,
  id: string,
  receivedAt: number,
  headers: string,
  handling: string | null,
  isEntered: 0 | 1,
  body: Buffer,
  sink: string | null,
];

const SELECT: Readonly<Record<SetAsideKind, string>> = {
  // Before quarantined events had entries, they had salts already.
  quarantine: `SELECT key, id, received_at, headers, handling, entered.key IS NOT NULL, body, NULL
    FROM quarantine LEFT JOIN quarantine_entered AS entered USING (key)`,
  'dead-letters': 'SELECT key, id, received_at, headers, handling, 1, body, sink FROM dead_letters',
};

/** The entries that the log of receipts has of quarantined events and dead letters. */
export class AsideEntries {
  readonly #db: Database.Database;

  constructor(db: Database.Database) {
    this.#db = db;
  }

  /** The log has entries of these quarantined events, if they are still there. Inside a transaction. */
  note(keys: readonly number[]): void {
    this.#db
      .prepare(
        `INSERT OR IGNORE INTO quarantine_entered
         SELECT key FROM quarantine WHERE key IN (SELECT value FROM json_each(?))`,
      )
      .run(JSON.stringify(keys));
  }

  /** A page of rows, also those without an entry, by `keys` or `after`; empty at the end. */
  list(kind: SetAsideKind, { keys, after = 0, limit = 100 }: Selection): SetAsideEntry[] {
    const among = keys === undefined ? '' : 'AND key IN (SELECT value FROM json_each(?))';
    const values = [after, ...(keys === undefined ? [] : [JSON.stringify(keys)]), limit];
    const rows = this.#db
      .prepare(`${SELECT[kind]} WHERE key > ? ${among} ORDER BY key LIMIT ?`)
      .raw()
      .iterate(...values) as IterableIterator<Row>;
    const found: SetAsideEntry[] = [];
    let bytes = 0;
    for (const [key, id, receivedAt, headers, handling, isEntered, body, sink] of rows) {
      const entry = isEntered === 0 ? null : entryOfRow({ id, receivedAt, headers, handling, body });
      found.push({ key, sink, entry: entry?.toString('base64') ?? null });
      bytes += body.length;
      if (bytes > STEP_BYTES) break;
    }
    return found;
  }

  /** The entries of these rows, base64, by key. */
  of(kind: SetAsideKind, keys: readonly number[]): ReadonlyMap<number, string> {
    const found = new Map<number, string>();
    for (let after: number | undefined = 0; after !== undefined;) {
      const page: SetAsideEntry[] = keys.length === 0 ? [] : this.list(kind, { keys, after });
      for (const { key, entry } of page) if (entry !== null) found.set(key, entry);
      after = page.at(-1)?.key;
    }
    return found;
  }
}
