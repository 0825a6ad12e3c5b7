/** A file whose bytes cannot be searched; it stands on the receipt. */
export class NotSearched extends Error {
  constructor(what: string) {
    super(`${what} cannot be searched; recreate it without the user`);
    this.name = 'NotSearched';
  }
}

/** First bytes of files that hide their content. */
const BEGINNINGS: readonly [what: string, at: number, magic: Buffer][] = [
  ['a gzip file', 0, Buffer.from([0x1f, 0x8b])],
  ['a zstd file', 0, Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ['an xz file', 0, Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00])],
  ['a bzip2 file', 4, Buffer.from([0x31, 0x41, 0x59, 0x26, 0x53, 0x59])],
  ['an lz4 file', 0, Buffer.from([0x04, 0x22, 0x4d, 0x18])],
  ['a 7z file', 0, Buffer.from([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c])],
  ['a rar file', 0, Buffer.from('Rar!\x1a\x07', 'latin1')],
  ['a zip file', 0, Buffer.from('PK\x03\x04', 'latin1')],
  ['a tar file', 257, Buffer.from('ustar')],
  ['a Parquet file', 0, Buffer.from('PAR1')],
  ['an Arrow file', 0, Buffer.from('ARROW1')],
  ['an Avro file', 0, Buffer.from('Obj\x01', 'latin1')],
  ['an SQLite file', 0, Buffer.from('SQLite format 3\0')],
  ['a DuckDB file', 8, Buffer.from('DUCK')],
  ['a PDF file', 0, Buffer.from('%PDF-')],
];

/** @param start the first bytes of a file, decompressed by its extension. @throws NotSearched */
export function checkSearchable(start: Buffer): void {
  for (const [what, at, magic] of BEGINNINGS)
    if (start.subarray(at, at + magic.length).equals(magic)) throw new NotSearched(what);
}

/** Extensions of such files that have no first bytes of their own, or are still being written. */
export const HIDES_CONTENT =
  /\.(db|db-wal|db-shm|db-journal|duckdb|wal|parquet|orc|tar|zip|7z|xz|br|bz2|lz4|sz|snappy|z|gpg|pgp|age|enc)$/i;
