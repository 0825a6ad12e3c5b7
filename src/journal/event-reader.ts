import type Database from 'better-sqlite3';
import { EVENT_COLUMNS, sqliteCode } from './database.ts';
import { PageReader, type PageLimits, type ReadPage } from './page-reader.ts';
import { checksumOf, packRows, type EventRow } from './rows.ts';

type Found = [...row: EventRow, body: Buffer, crc: number | null, seq: number];

/** A record that is not what was written. `row` and `body` are what can still be read of it. */
export interface DamagedRecord {
  readonly seq: number;
  readonly row: EventRow | null;
  readonly body: Buffer;
}

/**
 * Reads events in order and checks each against its checksum. One bad record, or one page that SQLite cannot read, never
 * holds up those after it: it is passed over and given to `onDamage`, and a record with no targets stands in its place.
 */
export class EventReader {
  readonly #pages: PageReader;
  readonly #select;
  readonly #selectOne;

  constructor(db: Database.Database) {
    this.#pages = new PageReader(db);
    const columns = `${EVENT_COLUMNS}, crc, seq`;
    this.#select = db.prepare(`SELECT ${columns} FROM events WHERE seq > ? ORDER BY seq LIMIT ?`).raw();
    this.#selectOne = db.prepare(`SELECT ${columns} FROM events WHERE seq = ?`).raw();
  }

  /** @param last the newest seq there is */
  read(after: number, last: number, limits: PageLimits, onDamage: (record: DamagedRecord) => void): ReadPage {
    return this.#readSound(after, limits) ?? this.#readEach(after, last, limits, onDamage);
  }

  #readSound(after: number, limits: PageLimits): ReadPage | null {
    try {
      return this.#pages.read(after, limits);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return null;
    }
  }

  /** One record after the other, up to the page of the file that cannot be read. */
  #readEach(
    after: number,
    last: number,
    limits: PageLimits,
    onDamage: (record: DamagedRecord) => void,
  ): ReadPage {
    const page = new Page(limits.bytes, onDamage);
    try {
      for (const found of this.#select.iterate(after, limits.count) as Iterable<Found>) {
        if (!page.take(found)) break;
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (page.seqs.length === 0) this.#stepOver(page, after, last, limits.count);
    }
    return page.packed();
  }

  /** One record at a time, until one can be read again. */
  #stepOver(page: Page, after: number, last: number, count: number): void {
    for (let seq = after + 1; seq <= last && page.seqs.length < count; seq += 1) {
      try {
        const found = this.#selectOne.get(seq) as Found | undefined;
        if (found === undefined) continue;
        page.take(found);
        return;
      } catch (error) {
        if (!isDamage(error)) throw error;
        page.damaged({ seq, row: null, body: NOTHING });
      }
    }
  }
}

/** What stands for a record that cannot be used: nobody's target. */
const NOBODY: EventRow = ['', '', '', null, null, null, 0, '{}', '{"only":[]}'];
const NOTHING = Buffer.alloc(0);

/** Gathers records, each checked. */
class Page {
  readonly #rows: EventRow[] = [];
  readonly #bodies: Buffer[] = [];
  readonly #most: number;
  readonly #onDamage: (record: DamagedRecord) => void;
  readonly seqs: number[] = [];
  #bytes = 0;

  constructor(most: number, onDamage: (record: DamagedRecord) => void) {
    this.#most = most;
    this.#onDamage = onDamage;
  }

  /** False when the page is full; the first always fits. */
  take(found: Found): boolean {
    const [body, crc, seq] = found.splice(-3) as [Buffer, number | null, number];
    const row = found as unknown as EventRow;
    if (this.seqs.length > 0 && this.#bytes + body.length > this.#most) return false;
    if (crc === null || checksumOf(row, body) === crc) this.#add(seq, row, body);
    else this.damaged({ seq, row, body });
    return true;
  }

  damaged(record: DamagedRecord): void {
    this.#onDamage(record);
    this.#add(record.seq, NOBODY, NOTHING);
  }

  packed(): ReadPage {
    return { ...packRows(this.#rows, this.#bodies), seqs: this.seqs };
  }

  #add(seq: number, row: EventRow, body: Buffer): void {
    this.seqs.push(seq);
    this.#rows.push(row);
    this.#bodies.push(body);
    this.#bytes += body.length;
  }
}

/** A page that is not what SQLite wrote, as against a disk that does not answer. */
function isDamage(error: unknown): boolean {
  const code = sqliteCode(error);
  return code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB';
}
