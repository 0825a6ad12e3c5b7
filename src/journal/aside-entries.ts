import type Database from 'better-sqlite3';
import type { Selection } from '../core/journal.ts';
import type { SetAsideEntry, SetAsideKind } from '../core/receipt.ts';
import { entryOfKept } from './receipt-entries.ts';

/** Of bodies that are read and hashed in one step: some milliseconds, which commits wait for. */
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
  // What was quarantined before its entries were in the log has a salt as well.
  quarantine: `SELECT key, id, received_at, headers, handling, entered.key IS NOT NULL, body, NULL
    FROM quarantine LEFT JOIN quarantine_entered AS entered USING (key)`,
  'dead-letters': 'SELECT key, id, received_at, headers, handling, 1, body, sink FROM dead_letters',
};

/** What the log of receipts has of the events that are set aside. */
export class AsideEntries {
  readonly #db: Database.Database;

  constructor(db: Database.Database) {
    this.#db = db;
  }

  /** The log has entries for these rows of the quarantine, as far as they are still there. Inside a transaction. */
  note(keys: readonly number[]): void {
    if (keys.length === 0) return;
    this.#db
      .prepare(
        `INSERT OR IGNORE INTO quarantine_entered
         SELECT key FROM quarantine WHERE key IN (SELECT value FROM json_each(?))`,
      )
      .run(JSON.stringify(keys));
  }

  /** A page of rows, by `keys` or `after`, those without an entry too: as many as an answer should hold, none at the end. */
  list(kind: SetAsideKind, { keys, after = 0, limit = 100 }: Selection): SetAsideEntry[] {
    const among = keys === undefined ? '' : 'AND key IN (SELECT value FROM json_each(?))';
    const values = [after, ...(keys === undefined ? [] : [JSON.stringify(keys)]), limit];
    const rows = this.#db
      .prepare(`${SELECT[kind]} WHERE key > ? ${among} ORDER BY key LIMIT ?`)
      .raw()
      .iterate(...values) as IterableIterator<Row>;
    const found: SetAsideEntry[] = [];
    let bytes = 0;
    for (const row of rows) {
      found.push({ key: row[0], sink: row[7], entry: entryIn(row)?.toString('base64') ?? null });
      bytes += row[6].length;
      if (bytes > STEP_BYTES) break;
    }
    return found;
  }

  /** What these rows have, base64. */
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

function entryIn([, id, receivedAt, headers, handling, isEntered, body]: Row): Buffer | null {
  return isEntered === 0 ? null : entryOfKept({ id, receivedAt, headers, handling, body });
}
