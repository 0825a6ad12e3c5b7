import type Database from 'better-sqlite3';
import { EVENT_COLUMNS } from './database.ts';
import type { Answers, EventRow } from './protocol.ts';
import { bodyOf, checksumOf, storedOf } from './rows.ts';

/** Records in order, as they travel to the main thread. */
export type ReadPage = Omit<Answers['read'], 'damaged'>;

export interface PageLimits {
  readonly count: number;
  /** Of all bodies together; the first record always fits. */
  readonly bytes: number;
}

/** A record without its body. */
type Head = [...row: EventRow, crc: number | null, seq: number];

/** Reads whole pages of sound records: first what stands beside the bodies, then all bodies in one piece. */
export class PageReader {
  readonly #heads;
  readonly #bodies;

  constructor(db: Database.Database) {
    const columns = EVENT_COLUMNS.replace('body', 'length(body)');
    // As arrays: an object for each row costs as much as the row.
    this.#heads = db
      .prepare(`SELECT ${columns}, crc, seq FROM events WHERE seq > ? ORDER BY seq LIMIT ?`)
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
    const heads = this.#heads.all(after, limits.count) as Head[];
    const { rows, crcs, seqs } = cut(heads, limits.bytes);
    const read = this.#bodies.get(after, seqs.at(-1) ?? after) as Buffer | null;
    const page = { rows, seqs, bodies: read === null ? new Uint8Array() : transferable(read) };
    return isSound(page, crcs) ? page : null;
  }
}

/** As many as the bytes allow, and the first anyway. */
function cut(
  heads: readonly Head[],
  most: number,
): { rows: EventRow[]; crcs: (number | null)[]; seqs: number[] } {
  const rows: EventRow[] = [];
  const crcs: (number | null)[] = [];
  const seqs: number[] = [];
  let size = 0;
  for (const head of heads) {
    size += head[9];
    if (rows.length > 0 && size > most) break;
    seqs.push(head.pop() as number);
    crcs.push(head.pop() as number | null);
    rows.push(head as unknown as EventRow);
  }
  return { rows, crcs, seqs };
}

/** The bytes in a buffer that is all theirs: what is transferred must not take others with it. */
function transferable(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, length } = bytes;
  const own = buffer instanceof ArrayBuffer && byteOffset === 0 && buffer.byteLength === length;
  return own ? new Uint8Array(buffer) : new Uint8Array(bytes);
}

/** Records without a checksum, of an older format, are taken for what they are. */
function isSound(page: ReadPage, crcs: readonly (number | null)[]): boolean {
  if (page.rows.reduce((sum, row) => sum + row[9], 0) !== page.bodies.length) return false;
  let at = 0;
  return page.rows.every((row, index) => {
    const crc = crcs[index] ?? null;
    const body = bodyOf(page, at, row[9]);
    at += row[9];
    return crc === null || checksumOf(storedOf(row, body)) === crc;
  });
}
