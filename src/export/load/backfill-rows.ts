import { z } from 'zod';
import { Places } from '../../archive/places.ts';
import { MillraceError } from '../../core/errors.ts';
import { CLOSE_BRACE, COMMA, JsonFault, OPEN_BRACE, skipValue } from '../../lib/json-text.ts';
import { cutLines, type Line } from '../../lib/lines.ts';
import { jsonIn } from '../../lib/parsed.ts';
import { writePulls } from '../../tables/database/pulls.ts';
import { certainRange, type Pull } from '../../tables/sql/vanished.ts';
import type { Tables } from '../../tables/tables.ts';
import { allColumnsOf, columnsOf, type TableDefinition } from '../../tables/definition.ts';
import { columnsInRow } from '../../tables/shape/plan.ts';
import { appendRows } from './append.ts';
import type { BackfillSource } from './archives.ts';
import { PULLS, readBackfillFolder } from './backfill-folder.ts';
import { type LoadCounts, type LoadTerms, noCounts } from './options.ts';
import { RowMembers } from './row-members.ts';

/** Bytes of rows that are sent to the database together. */
const BATCH_BYTES = 4 * 1024 * 1024;

const time = z.iso.datetime({ offset: true });
/** A line of the file of pulls; `since` and `until` are days, both included, or times, the second not included. */
const pullLine = z.object({
  user_id: z.string(),
  resource: z.string(),
  table: z.string(),
  provider: z.string().nullable().default(null),
  since: z.iso.date().or(time).nullable(),
  until: z.iso.date().transform(dayAfter).or(time).nullable(),
  began_at: time,
});

function dayAfter(day: string): string {
  return new Date(Date.parse(day) + 86_400_000).toISOString();
}

/** Null for another line. */
function parsePull(line: string): Pull | null {
  try {
    return pullLine.parse(jsonIn(line));
  } catch {
    return null;
  }
}

/**
 * The tables of which a backfill's folder has files, and its whole pulls.
 * @throws MillraceError usage for another folder; rows_missing where a table or a pull is not as it should be
 */
export async function filesOfBackfill(
  folder: string,
  known: Tables,
): Promise<{ readonly tables: ReadonlySet<string>; readonly pulls: readonly Pull[] }> {
  const places = new Places();
  const found = await readBackfillFolder(folder, places, known);
  if (found === null)
    throw new MillraceError('usage', `${folder}: it is not the output folder of a backfill`);
  for (const { file, reason } of found.problems)
    throw new MillraceError('rows_missing', `${file}: ${reason}`);
  const [{ root, rows }] = found.files;
  const tables = definitionsOf(rows, known);
  const pulls = await readPulls(cutLines(places.at(root).chunks(PULLS)), tables, (line, reason) => {
    throw new MillraceError('rows_missing', `${PULLS}:${line}: ${reason}`);
  });
  return { tables: new Set(tables.keys()), pulls };
}

function definitionsOf(rows: BackfillSource['rows'], known: Tables): ReadonlyMap<string, TableDefinition> {
  return new Map(rows.map(({ table }) => [table, known.entry(table).definition]));
}

/** @param onProblem gets each line that is no pull of these tables */
async function readPulls(
  chunks: AsyncIterable<Line[]>,
  tables: ReadonlyMap<string, TableDefinition>,
  onProblem: (line: number, reason: string) => void,
): Promise<Pull[]> {
  const pulls: Pull[] = [];
  for await (const lines of chunks)
    for (const { bytes, number, ended } of lines) {
      const pull = ended && bytes !== null ? parsePull(bytes.toString()) : null;
      const table = tables.get(pull?.table ?? '');
      if (pull === null) onProblem(number, 'it is no line of a pull');
      else if (table !== undefined) pulls.push(certainRange(pull, table));
      else onProblem(number, `${pull.table}.ndjson is missing`);
    }
  return pulls;
}

/** Loads the files of a backfill, as one load, in a transaction of the caller's. */
export class BackfillRows {
  readonly counts: LoadCounts = noCounts();
  readonly #terms: LoadTerms;
  readonly #root: string;
  readonly #load: number;

  constructor(terms: LoadTerms, root: string, load: number) {
    this.#terms = terms;
    this.#root = root;
    this.#load = load;
  }

  async load({ file, sha256, rows }: BackfillSource, onBatch: () => void): Promise<void> {
    const { tables, options } = this.#terms;
    for (const one of rows) await this.#loadFile(one.file, tables.known.entry(one.table).definition, onBatch);
    const written = definitionsOf(rows, tables.known);
    const noted = await readPulls(this.#linesOf(PULLS), written, (line, reason) =>
      this.#note(PULLS, line, reason),
    );
    const now = await readBackfillFolder(this.#root, options.places, tables.known);
    if (now?.files[0].sha256 !== sha256)
      this.#note(file, null, 'the files were replaced while they were loaded');
    // An incomplete pull would remove rows that the service still has.
    if (this.counts.problems + this.counts.rejects === 0)
      await writePulls(this.#terms.database, this.#load, noted);
    else
      options.onProblem(PULLS, null, 'not all rows are loaded: rows that have vanished at the service stay');
  }

  async #loadFile(file: string, table: TableDefinition, onBatch: () => void): Promise<void> {
    const columns = columnsInRow(table, allColumnsOf(table));
    const members = new RowMembers(columns);
    const wanted = new Set(columnsOf(table));
    const dropped = new Set(columns.flatMap((column, at) => (wanted.has(column) ? [] : [at])));
    let [batch, size]: [Row[], number] = [[], 0];
    for await (const lines of this.#linesOf(file)) {
      for (const line of lines) {
        const { bytes, number } = line;
        const cuts: number[] = [];
        const fault = faultOf(line, members, (column, from, to) => {
          if (dropped.has(column)) cuts.push(from, to);
        });
        if (fault !== null || bytes === null) this.#note(file, number, fault ?? '');
        else batch.push({ bytes: cuts.length === 0 ? bytes : without(bytes, cuts), number });
        size += bytes?.length ?? 0;
      }
      if (size < BATCH_BYTES) continue;
      await this.#send(file, table, batch);
      [batch, size] = [[], 0];
      onBatch();
    }
    if (batch.length > 0) await this.#send(file, table, batch);
  }

  async *#linesOf(file: string): AsyncGenerator<Line[]> {
    const { places, signal } = this.#terms.options;
    for await (const lines of cutLines(places.at(this.#root).chunks(file))) {
      signal.throwIfAborted();
      yield lines;
    }
  }

  #note(file: string, line: number | null, reason: string): void {
    this.counts.problems += 1;
    this.#terms.options.onProblem(file, line, reason);
  }

  async #send(file: string, table: TableDefinition, batch: readonly Row[]): Promise<void> {
    const { options, database } = this.#terms;
    const { counts } = this;
    const { name } = table;
    const lines = Buffer.concat(batch.flatMap(({ bytes }) => [bytes, LINE_FEED]));
    const refused = await appendRows(database, table, lines, this.#load, (row, reason) => {
      const before = lines.subarray(0, row.byteOffset - lines.byteOffset);
      const line = batch[before.toString('latin1').split('\n').length - 1]?.number ?? 0;
      options.onReject({ table: name, code: 'refused', reason, file, line });
    });
    counts.rejects += refused;
    counts.records += batch.length;
    counts.rows[name] = (counts.rows[name] ?? 0) + batch.length - refused;
  }
}

/** A line as a row, and its number. */
interface Row {
  readonly bytes: Buffer;
  readonly number: number;
}

/** A row without the members between these pairs of indexes. */
function without(row: Buffer, cuts: readonly number[]): Buffer {
  const bounds = [0, ...cuts, row.length];
  const left = Buffer.concat(
    bounds.flatMap((from, at) => (at % 2 === 0 ? [row.subarray(from, bounds[at + 1])] : [])),
  );
  // The last member is gone, and its comma is not.
  return left.at(-2) === COMMA ? Buffer.concat([left.subarray(0, -2), left.subarray(-1)]) : left;
}

/** Why a line is no row as the shaper writes them; null when it is one. @param onMember gets where each member stands, with its comma */
function faultOf(
  { bytes, ended }: Line,
  members: RowMembers,
  onMember: (column: number, from: number, to: number) => void,
): string | null {
  if (bytes === null || !ended) return 'the line is not complete';
  let at = 1;
  try {
    for (let from = 0; ;) {
      const column = members.columnAt(bytes, at, from);
      const value = at + members.lengthOf(column);
      // A value that is missing is not written as null.
      if (column === -1 || bytes[value] === N) break;
      const start = at;
      at = skipValue(bytes, value, 1);
      if (bytes[at] === COMMA) at += 1;
      onMember(column, start, at);
      from = column + 1;
    }
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return error.message;
  }
  const isRow = bytes[0] === OPEN_BRACE && bytes[at] === CLOSE_BRACE && at + 1 === bytes.length;
  return isRow ? null : `${at} bytes into the line is no column of the table, or no next one`;
}

const N = 'n'.charCodeAt(0);
const LINE_FEED = Buffer.from('\n');
