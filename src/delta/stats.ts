import { type FileMetaData, parquetMetadata } from 'hyparquet';
import { isRecord } from '../lib/is-record.ts';

type Bound = string | number;

/** Times and days as the log has them; texts are left out of it. */
const PARSERS = {
  timestampFromMicroseconds: (micros: bigint) => ({ micros }),
  dateFromDays: (days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10),
  stringFromBytes: () => undefined,
};

/** Of years with four digits. */
const EARLIEST = Date.UTC(1000, 0);
const LATEST = Date.UTC(10_000, 0);

/**
 * The statistics of a file of rows, as JSON text: how many rows, how often each column is null, and the bounds of numbers,
 * days and times. Bounds of texts are not said: they are ids and words of people, in a log that lives longer than the files.
 * @param footer the end of the file: its footer at least
 */
export function statsOf(footer: Buffer): string {
  const bytes = Uint8Array.from(footer).buffer;
  const {
    num_rows: rows,
    row_groups: groups,
    schema,
  } = parquetMetadata(bytes, { parsers: PARSERS, geoparquet: false });
  const [minValues, maxValues, nullCount]: [
    Record<string, Bound>,
    Record<string, Bound>,
    Record<string, number>,
  ] = [{}, {}, {}];
  for (const { name } of schema.slice(1)) {
    const columns = groups.map((group) => statisticsOf(group, name));
    if (columns.some((column) => column === undefined)) continue;
    nullCount[name] = columns.reduce((sum, column) => sum + Number(column?.null_count ?? 0n), 0);
    const [least, greatest] = [
      columns.map((column) => column?.min_value),
      columns.map((column) => column?.max_value),
    ];
    const min = bound(least, 'down');
    const max = bound(greatest, 'up');
    if (min === null || max === null) continue;
    minValues[name] = min;
    maxValues[name] = max;
  }
  return JSON.stringify({ numRecords: Number(rows), minValues, maxValues, nullCount });
}

type Group = FileMetaData['row_groups'][number];

function statisticsOf({ columns }: Group, name: string) {
  return columns.find(({ meta_data: meta }) => meta?.path_in_schema[0] === name)?.meta_data?.statistics;
}

/** The outermost of the row groups' bounds; null when there is none that can be said. */
function bound(values: readonly unknown[], way: 'up' | 'down'): Bound | null {
  const said = values
    .filter((value) => value !== undefined && value !== null)
    .map((value) => written(value, way));
  if (said.length === 0 || said.includes(null)) return null;
  const all = said as Bound[];
  return all.reduce((outer, one) => ((way === 'up' ? one > outer : one < outer) ? one : outer));
}

/** Times are in milliseconds there: those between are rounded outwards, so that none lies outside of its bounds. */
function written(value: unknown, way: 'up' | 'down'): Bound | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : null;
  if (!isRecord(value) || typeof value['micros'] !== 'bigint') return null;
  const millis = Number(value['micros']) / 1000;
  const rounded = way === 'up' ? Math.ceil(millis) : Math.floor(millis);
  return rounded < EARLIEST || rounded >= LATEST ? null : new Date(rounded).toISOString();
}
