import type Database from 'better-sqlite3';
import { ROW_COLUMNS } from './database.ts';
import { bodiesOf, checksumOf, type EventRow, type Packed } from './rows.ts';

/** Records in order, as they travel to the main thread. */
export interface ReadPage extends Packed {
  readonly seqs: readonly number[];
}

export interface PageLimits {
  readonly count: number;
  /** Of all bodies together; the first record always fits. */
  readonly bytes: number;
}

/** A record without its body. */
type Head = [...row: EventRow, size: number, crc: number | null, seq: number];

/** Reads whole pages of sound records: first what stands beside the bodies, then all bodies in one piece. */
export class PageReader {
  readonly #heads;
  readonly #bodies;

  constructor(db: Database.Database) {
    // As arrays: an object for each row costs as much as the row.
    this.#heads = db
      .prepare(`SELECT ${ROW_COLUMNS}, length(body), crc, seq FROM events WHERE seq > ? ORDER BY seq LIMIT ?`)
      .raw();
    // To make a Buffer of each body takes longer than to read it. Texts are joined byte by byte, whatever they hold.
    this.#bodies = db
      .prepare(
        `SELECT CAST(group_concat(body, '') AS BLOB)
         FROM (SELECT body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq)`,
      )
      .pluck();
  }

  /** The page after a seq; null when one of its records is not what was written. Throws SQLite's errors. */
  read(after: number, limits: PageLimits): ReadPage | null {
    const rows: EventRow[] = [];
    const sizes: number[] = [];
    const crcs: (number | null)[] = [];
    const seqs: number[] = [];
    let length = 0;
    for (const head of this.#heads.all(after, limits.count) as Head[]) {
      const size = head[9];
      if (rows.length > 0 && length + size > limits.bytes) break;
      length += size;
      seqs.push(head.pop() as number);
      crcs.push(head.pop() as number | null);
      sizes.push(head.pop() as number);
      rows.push(head as unknown as EventRow);
    }
    const read = this.#bodies.get(after, seqs.at(-1) ?? after) as Buffer | null;
    const page = { rows, sizes, seqs, bodies: read === null ? new Uint8Array() : transferable(read) };
    return page.bodies.length === length && isSound(page, crcs) ? page : null;
  }
}

/** The bytes in a buffer that is all theirs: what is transferred must not take others with it. */
function transferable(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, length } = bytes;
  const own = buffer instanceof ArrayBuffer && byteOffset === 0 && buffer.byteLength === length;
  return own ? new Uint8Array(buffer) : new Uint8Array(bytes);
}

/** Records without a checksum, of an older format, are taken for what they are. */
function isSound(page: Packed, crcs: readonly (number | null)[]): boolean {
  return bodiesOf(page).every((body, index) => {
    const crc = crcs[index] ?? null;
    return crc === null || checksumOf(page.rows[index] as EventRow, body) === crc;
  });
}
