import { z } from 'zod';
import { ByteWriter } from '../../lib/byte-writer.ts';
import { JsonFault, membersOf } from '../../lib/json-text.ts';
import { cutLines, type Line } from '../../lib/lines.ts';
import { jsonIn } from '../../lib/parsed.ts';
import { type Pull, writePulls } from '../../tables/database/pulls.ts';
import type { TableDefinition } from '../../tables/definition.ts';
import { columnsInRow } from '../../tables/shape/plan.ts';
import { appendRows } from './append.ts';
import type { LoadedSource } from './archives.ts';
import { readBackfillFolder } from './backfill-folder.ts';
import { type LoadCounts, type LoadTerms, noCounts } from './step.ts';

/** Bytes of rows that are sent to the database together. */
const BATCH_BYTES = 2 * 1024 * 1024;

/** A line of the file of pulls; `since` and `until` are days, both included, or times, the second not included. */
const pullLine = z.object({
  user_id: z.string(),
  resource: z.string(),
  table: z.string(),
  provider: z.string().nullable().default(null),
  since: z.union([z.iso.date(), z.iso.datetime({ offset: true })]),
  until: z.union([
    z.iso.date().transform((day) => new Date(Date.parse(day) + DAY_MS).toISOString()),
    z.iso.datetime({ offset: true }),
  ]),
  began_at: z.iso.datetime({ offset: true }),
});
const DAY_MS = 86_400_000;

/** Null for another line. */
function parsePull(line: string): Pull | null {
  try {
    return pullLine.parse(jsonIn(line));
  } catch {
    return null;
  }
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

  async load({ file, sha256, rows = [], pulls }: LoadedSource, onBatch: () => void): Promise<void> {
    const { tables, options } = this.#terms;
    for (const one of rows) await this.#loadFile(one.file, tables.known.entry(one.table).definition, onBatch);
    if (pulls === undefined) return;
    const names = new Set(rows.map(({ table }) => table));
    const noted = await this.#readPulls(pulls, names);
    const now = await readBackfillFolder(this.#root, options.places, tables.known);
    if (now?.files[0]?.sha256 !== sha256)
      this.#note(file, null, 'the files were replaced while they were loaded');
    // An incomplete pull would remove rows that the service still has.
    if (this.counts.problems + this.counts.rejects === 0)
      await writePulls(this.#terms.database, this.#load, noted);
    else
      options.onProblem(pulls, null, 'not all rows are loaded: rows that have vanished at the service stay');
  }

  async #loadFile(file: string, table: TableDefinition, onBatch: () => void): Promise<void> {
    const rows = new OrderedRows(table);
    for await (const lines of this.#linesOf(file)) {
      for (const line of lines) {
        const reason = rows.add(line);
        if (reason !== null) this.#note(file, line.number, reason);
      }
      if (rows.bytes < BATCH_BYTES) continue;
      await this.#send(file, rows);
      onBatch();
    }
    await this.#send(file, rows);
  }

  async *#linesOf(file: string): AsyncGenerator<Line[]> {
    const { places, signal } = this.#terms.options;
    for await (const lines of cutLines(places.at(this.#root).chunks(file))) {
      signal.throwIfAborted();
      yield lines;
    }
  }

  async #readPulls(file: string, names: ReadonlySet<string>): Promise<Pull[]> {
    const pulls: Pull[] = [];
    for await (const lines of this.#linesOf(file)) {
      for (const { bytes, number, ended } of lines) {
        const pull = ended && bytes !== null ? parsePull(bytes.toString()) : null;
        if (pull === null) this.#note(file, number, 'it is no line of a pull');
        else if (names.has(pull.table)) pulls.push(pull);
        else this.#note(file, number, `${pull.table}.ndjson is missing`);
      }
    }
    return pulls;
  }

  #note(file: string, line: number | null, reason: string): void {
    this.counts.problems += 1;
    this.#terms.options.onProblem(file, line, reason);
  }

  async #send(file: string, rows: OrderedRows): Promise<void> {
    const { lines, numbers } = rows.take();
    const { name } = rows.table;
    if (numbers.length === 0) return;
    const { options, database } = this.#terms;
    const refused = await appendRows(database, rows.table, lines, this.#load, (row, reason) => {
      const before = lines.subarray(0, row.byteOffset - lines.byteOffset);
      const line = numbers[before.toString('latin1').split('\n').length - 1] ?? 0;
      options.onReject({ table: name, code: 'refused', reason, file, line });
    });
    const { counts } = this;
    counts.rejects += refused;
    counts.records += numbers.length;
    counts.rows[name] = (counts.rows[name] ?? 0) + numbers.length - refused;
  }
}

/** Rows of a file, with their members in the order of the shaper's rows, as databases take them. */
class OrderedRows {
  readonly table: TableDefinition;
  readonly #slots: ReadonlyMap<string, number>;
  readonly #out = new ByteWriter(64 * 1024);
  #numbers: number[] = [];

  constructor(definition: TableDefinition) {
    this.table = definition;
    this.#slots = new Map(columnsInRow(definition).map(({ name }, slot) => [JSON.stringify(name), slot]));
  }

  get bytes(): number {
    return this.#out.length;
  }

  /** @returns why the line is no row of the table; null when it was added */
  add({ bytes, number, ended }: Line): string | null {
    if (bytes === null || !ended) return 'the line is not complete';
    const members: Buffer[] = [];
    try {
      for (const { name, value } of membersOf(bytes, 0)) {
        const column = bytes.toString('utf8', ...name);
        const slot = this.#slots.get(column);
        if (slot === undefined) return `the table has no column ${column}`;
        if (!bytes.subarray(...value).equals(NULL))
          members[slot] = Buffer.concat([bytes.subarray(...name), COLON, bytes.subarray(...value), COMMA]);
      }
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      return error.message;
    }
    const row = Buffer.concat(Object.values(members));
    if (row.length === 0) return 'the row is empty';
    this.#out.append(OPEN);
    this.#out.append(row.subarray(0, -1));
    this.#out.append(CLOSE);
    this.#numbers.push(number);
    return null;
  }

  /** The rows so far, valid until the next call of `add`, and the number of the line of each. */
  take(): { readonly lines: Buffer; readonly numbers: readonly number[] } {
    const taken = { lines: this.#out.view(), numbers: this.#numbers };
    this.#out.length = 0;
    this.#numbers = [];
    return taken;
  }
}

const NULL = Buffer.from('null');
const COLON = Buffer.from(':');
const COMMA = Buffer.from(',');
const OPEN = Buffer.from('{');
const CLOSE = Buffer.from('}\n');
