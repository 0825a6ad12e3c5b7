import { createReadStream } from 'node:fs';
import Database from 'better-sqlite3';
import { parseHead, type RecordEnvelope } from '../../core/archive-record.ts';
import { isRecord, jsonIn } from '../../lib/parsed.ts';
import { cutLines } from '../../lib/lines.ts';

/** Event types that carry a meal whole, as `data`. */
const CARRIES_MEAL = 'daily.data.meal.';

/** Ids of known meals, on disk, as years of many users are many. */
export class MealIds {
  readonly #db = new Database('');
  readonly #add;
  readonly #has;

  constructor() {
    this.#db.exec('PRAGMA journal_mode = OFF; CREATE TABLE held (id TEXT PRIMARY KEY) WITHOUT ROWID; BEGIN');
    this.#add = this.#db.prepare('INSERT OR IGNORE INTO held VALUES (?)');
    this.#has = this.#db.prepare('SELECT 1 FROM held WHERE id = ?');
  }

  has(id: string): boolean {
    return this.#has.get(id) !== undefined;
  }

  /** Adds the meal of a record, if it has one. @param text of the whole record. @returns its user */
  addRecord(
    { event_type: type }: Pick<RecordEnvelope, 'event_type'>,
    text: Buffer,
    body: Buffer,
  ): string | null {
    if (!type.startsWith(CARRIES_MEAL)) return null;
    const event = jsonIn(body.toString());
    const id = isRecord(event) ? idOf(event['data']) : null;
    if (id !== null) this.#add.run(id);
    return parseHead(text)?.record.user_id ?? null;
  }

  /** Adds the `id` of each row of a table of meals; skips invalid lines. */
  async addTable(path: string): Promise<void> {
    for await (const lines of cutLines(createReadStream(path) as AsyncIterable<Buffer>)) {
      for (const { bytes } of lines) {
        const id = bytes === null ? null : idOf(jsonIn(bytes.toString()));
        if (id !== null) this.#add.run(id);
      }
    }
  }

  close(): void {
    this.#db.close();
  }
}

function idOf(row: unknown): string | null {
  return isRecord(row) && typeof row['id'] === 'string' ? row['id'] : null;
}
