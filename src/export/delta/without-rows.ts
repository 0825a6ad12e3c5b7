import { gzipSync } from 'node:zlib';
import {
  type AsyncBuffer,
  type ConvertedType,
  type FileMetaData,
  parquetMetadataAsync,
  parquetScan,
  type SchemaElement,
} from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { asBuffer } from '../../lib/byte-writer.ts';
import { DECOMPRESS, isKnown } from '../parquet/stored-pages.ts';

/** Decides which rows are removed. */
export interface RowJudge {
  /** Values of the file's partition, which every row has. */
  readonly fixed: Readonly<Record<string, string>>;
  /** True when a row with this value in a text or JSON column has to be passed to `whose`. */
  mayHold(value: Buffer): boolean;
  /** Requests by which a row is removed; none for one that stays. @param row its text columns as a JSON object */
  whose(row: Buffer): readonly string[];
}

export interface Judged {
  /** Number of removed rows by request. */
  readonly removed: ReadonlyMap<string, number>;
  /** Bytes of values that were searched. */
  readonly searched: number;
  /** The file without them; null when none is removed. */
  readonly rest: Rest | null;
}

export interface Rest {
  readonly bytes: Buffer;
  readonly rows: number;
  /** True when a stored file has the old file's columns, and the values of its other rows. @throws Error when it cannot be read */
  isIn(stored: AsyncBuffer): Promise<boolean>;
}

/** The values of a file cannot be copied as they are stored. */
export class NotFlat extends Error {}

/**
 * A Parquet file of any writer without some of its rows. Values are copied as they are stored, and never become numbers or times,
 * so that none of them changes.
 * @throws NotFlat; Error when the file cannot be read
 */
export async function withoutRows(file: AsyncBuffer, judge: RowJudge): Promise<Judged> {
  const metadata = await parquetMetadataAsync(file, { geoparquet: false });
  const [root, ...columns] = metadata.schema;
  if (
    root?.num_children !== columns.length ||
    columns.some(({ type }) => type === undefined || type === 'INT96')
  )
    throw new NotFlat('it has nested columns, or times of 96 bits');
  const unknown = metadata.row_groups
    .flatMap((group) => group.columns)
    .find(({ meta_data: meta }) => meta !== undefined && !isKnown(meta.codec));
  if (unknown !== undefined) throw new NotFlat(`it is compressed as ${unknown.meta_data?.codec}`);
  const read = columnReader(file, metadata);
  const removed = new Map<string, number>();
  const going: ReadonlySet<number>[] = [];
  let searched = 0;
  for (const group of groupsOf(metadata)) {
    const found = await rowsToGo(read, columns, group, judge);
    searched += found.searched;
    going.push(found.rows);
    for (const [request, count] of found.removed) removed.set(request, (removed.get(request) ?? 0) + count);
  }
  if (removed.size === 0) return { removed, searched, rest: null };
  const rest = await written(read, metadata, going);
  const isIn = (stored: AsyncBuffer): Promise<boolean> => holdsRest(stored, read, metadata, going);
  return { removed, searched, rest: { ...rest, isIn } };
}

/** Uses the older word for integers of few bits, because other readers do not accept the writer's new one. */
function asWritten(element: SchemaElement): SchemaElement {
  const { logical_type: logical, ...rest } = element;
  if (logical?.type !== 'INTEGER') return element;
  const word = `${logical.isSigned ? '' : 'U'}INT_${logical.bitWidth}` as ConvertedType;
  return { ...rest, converted_type: rest.converted_type ?? word };
}

function sameSchema(one: readonly SchemaElement[], other: readonly SchemaElement[]): boolean {
  return JSON.stringify(one.map(asWritten)) === JSON.stringify(other.map(asWritten));
}

/** Without what says how a value is to be read, so that it is read as it is stored. */
function asStored({
  converted_type: _c,
  logical_type: _l,
  scale: _s,
  precision: _p,
  ...element
}: SchemaElement): SchemaElement {
  return element;
}

interface Group {
  readonly from: number;
  readonly to: number;
}

function groupsOf({ row_groups: groups }: FileMetaData): Group[] {
  let from = 0;
  return groups.map(({ num_rows: rows }) => {
    const to = from + Number(rows);
    const group = { from, to };
    from = to;
    return group;
  });
}

/** Reads values of a column as they are stored. */
type ReadColumn = (column: string, rows: Group) => Promise<unknown[]>;

function columnReader(file: AsyncBuffer, { ...metadata }: FileMetaData): ReadColumn {
  metadata.schema = metadata.schema.map(asStored);
  return async (column, { from, to }) => {
    // A scan keeps the columns that it has read, so each has its own.
    const scan = await parquetScan({
      file,
      metadata,
      compressors: DECOMPRESS,
      utf8: false,
      geoparquet: false,
    });
    return Array.from(await scan.readColumn({ column, rowStart: from, rowEnd: to }));
  };
}

async function rowsToGo(
  read: ReadColumn,
  columns: readonly SchemaElement[],
  group: Group,
  judge: RowJudge,
): Promise<{ rows: Set<number>; removed: Map<string, number>; searched: number }> {
  const texts = columns.filter(({ type }) => type === 'BYTE_ARRAY').map(({ name }) => name);
  const values = new Map<string, readonly unknown[]>();
  const candidates = new Set<number>();
  let searched = 0;
  for (const name of texts) {
    const column = await read(name, group);
    values.set(name, column);
    // Neighbouring rows are similar, and share a value that the file has once.
    let last: unknown = null;
    let holds = false;
    for (const [row, value] of column.entries()) {
      if (!(value instanceof Uint8Array)) continue;
      if (value !== last) {
        searched += value.length;
        holds = judge.mayHold(asBuffer(value));
        last = value;
      }
      if (holds) candidates.add(row);
    }
  }
  const { fixed } = judge;
  if (Object.values(fixed).some((value) => judge.mayHold(Buffer.from(JSON.stringify(value)))))
    for (let row = 0; row < group.to - group.from; row += 1) candidates.add(row);
  const rows = new Set<number>();
  const removed = new Map<string, number>();
  for (const row of candidates) {
    const document = Object.fromEntries(
      texts.flatMap((name) => {
        const value = values.get(name)?.[row];
        return value instanceof Uint8Array ? [[name, asBuffer(value).toString()]] : [];
      }),
    );
    const requests = judge.whose(Buffer.from(JSON.stringify({ ...document, ...fixed })));
    if (requests.length > 0) rows.add(row);
    for (const request of requests) removed.set(request, (removed.get(request) ?? 0) + 1);
  }
  return { rows, removed, searched };
}

async function written(
  read: ReadColumn,
  metadata: FileMetaData,
  going: readonly ReadonlySet<number>[],
): Promise<Omit<Rest, 'isIn'>> {
  const writer = new ByteWriter();
  const out = new ParquetWriter({
    writer,
    schema: metadata.schema.map(asStored),
    codec: 'GZIP',
    compressors: { GZIP: (bytes) => gzipSync(bytes) },
    createdBy: 'millrace',
    ...(metadata.key_value_metadata === undefined ? {} : { kvMetadata: metadata.key_value_metadata }),
  });
  let rows = 0;
  for (const [nth, group] of groupsOf(metadata).entries()) {
    const gone = going[nth] ?? new Set();
    const left = group.to - group.from - gone.size;
    if (left === 0) continue;
    const columnData = [];
    for (const element of metadata.schema.slice(1)) {
      const all = await read(element.name, group);
      const data = gone.size === 0 ? all : all.filter((_, row) => !gone.has(row));
      columnData.push({ name: element.name, data, statistics: hasOrder(element) });
    }
    await out.write({ columnData, rowGroupSize: left });
    rows += left;
  }
  // The same bytes are read as before.
  out.schema = metadata.schema.map(asWritten);
  await out.finish();
  return { bytes: Buffer.from(writer.getBytes()), rows };
}

/** Reads the written file: the old one may be removed only when it is complete. */
async function holdsRest(
  stored: AsyncBuffer,
  before: ReadColumn,
  old: FileMetaData,
  going: readonly ReadonlySet<number>[],
): Promise<boolean> {
  const metadata = await parquetMetadataAsync(stored, { geoparquet: false });
  if (!sameSchema(metadata.schema, old.schema)) return false;
  const after = columnReader(stored, metadata);
  const groups = groupsOf(metadata);
  for (const [nth, group] of groupsOf(old).entries()) {
    const gone = going[nth] ?? new Set();
    const left = group.to - group.from - gone.size;
    if (left === 0) continue;
    const now = groups.shift();
    if (now === undefined || now.to - now.from !== left) return false;
    for (const { name } of old.schema.slice(1)) {
      const values = await after(name, now);
      const kept = (await before(name, group)).filter((_, row) => !gone.has(row));
      if (values.length !== left || kept.some((value, row) => !isSame(value, values[row]))) return false;
    }
  }
  return groups.length === 0;
}

function isSame(one: unknown, other: unknown): boolean {
  if (one instanceof Uint8Array && other instanceof Uint8Array) return Buffer.compare(one, other) === 0;
  return Object.is(one ?? null, other ?? null);
}

/** True when stored values have the order of what they mean, so that statistics can be written. */
function hasOrder({ type, converted_type: converted, logical_type: logical }: SchemaElement): boolean {
  if (logical?.type === 'INTEGER' && !logical.isSigned) return false;
  if (converted?.startsWith('UINT') === true || converted === 'DECIMAL') return false;
  return type === 'INT32' || type === 'INT64';
}
