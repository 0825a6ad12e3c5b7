import type Database from 'better-sqlite3';
import { EVENT_COLUMNS, sqliteCode } from './database.ts';
import { PageReader, type PageLimits, type ReadPage } from './page-reader.ts';
import type { EventRow } from './protocol.ts';
import { checksumOf, storedOf, type StoredEvent } from './rows.ts';

type Found = [seq: number, crc: number | null, ...row: EventRow];

/** A record that is not what was written. `event` is what can still be read of it. */
export interface DamagedRecord {
  readonly seq: number;
  readonly id: string | null;
  readonly event: StoredEvent | null;
}

/**
 * Reads events in order and checks each against its checksum. One bad record, or one page that SQLite cannot read, never
 * holds up those after it: it is passed over and given to `onDamage`, and a record with no targets stands in its place.
 */
export class EventReader {
  readonly #pages: PageReader;
  readonly #select;
  readonly #selectOne;
  readonly #onDamage: (record: DamagedRecord) => void;

  constructor(db: Database.Database, onDamage: (record: DamagedRecord) => void) {
    this.#pages = new PageReader(db);
    const columns = `seq, crc, ${EVENT_COLUMNS}`;
    this.#select = db.prepare(`SELECT ${columns} FROM events WHERE seq > ? ORDER BY seq LIMIT ?`).raw();
    this.#selectOne = db.prepare(`SELECT ${columns} FROM events WHERE seq = ?`).raw();
    this.#onDamage = onDamage;
  }

  /** @param last the newest seq there is */
  read(after: number, last: number, limits: PageLimits): ReadPage {
    return this.#readSound(after, limits) ?? this.#readEach(after, last, limits);
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
  #readEach(after: number, last: number, limits: PageLimits): ReadPage {
    const page = new Page(limits.bytes);
    try {
      for (const found of this.#select.iterate(after, limits.count) as Iterable<Found>) {
        if (!this.#take(page, found)) break;
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
        this.#take(page, found);
        return;
      } catch (error) {
        if (!isDamage(error)) throw error;
        this.#onDamage({ seq, id: null, event: null });
        page.add(seq, NOBODY, NOTHING);
      }
    }
  }

  /** False when the page is full. */
  #take(page: Page, [seq, crc, ...row]: Found): boolean {
    const body = row[9] as unknown as Buffer;
    if (!page.hasRoom(body.length)) return false;
    const event = storedOf(row, body);
    if (crc === null || checksumOf(event) === crc) page.add(seq, row, body);
    else {
      this.#onDamage({ seq, id: event.id, event });
      page.add(seq, NOBODY, NOTHING);
    }
    return true;
  }
}

/** What stands for a record that cannot be used: nobody's target. */
const NOBODY: EventRow = ['', '', '', null, null, null, 0, '{}', '{"only":[]}', 0];
const NOTHING = Buffer.alloc(0);

/** Rows and bodies as they travel to the main thread. */
class Page {
  readonly #rows: EventRow[] = [];
  readonly #bodies: Buffer[] = [];
  readonly #most: number;
  readonly seqs: number[] = [];
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** The first always fits. */
  hasRoom(bytes: number): boolean {
    return this.seqs.length === 0 || this.#bytes + bytes <= this.#most;
  }

  add(seq: number, row: EventRow, body: Buffer): void {
    this.seqs.push(seq);
    (row as { 9: number })[9] = body.length;
    this.#rows.push(row);
    this.#bodies.push(body);
    this.#bytes += body.length;
  }

  packed(): ReadPage {
    // A buffer of its own: it is transferred.
    const bodies = new Uint8Array(this.#bytes);
    let at = 0;
    for (const body of this.#bodies) {
      bodies.set(body, at);
      at += body.length;
    }
    return { rows: this.#rows, bodies, seqs: this.seqs };
  }
}

/** A page that is not what SQLite wrote, as against a disk that does not answer. */
function isDamage(error: unknown): boolean {
  const code = sqliteCode(error);
  return code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB';
}
