import { z } from 'zod';
import { ByteWriter } from '../../lib/byte-writer.ts';
import { JsonFault, membersOf } from '../../lib/json-text.ts';
import { cutLines, type Line } from '../../lib/lines.ts';
import { jsonIn } from '../../lib/parsed.ts';
import { nextLoad, REFUSED, removeLoads, writeLoad } from '../../tables/database/ledger.ts';
import { type Pull, removeVanished, writePulls } from '../../tables/database/pulls.ts';
import type { TableDefinition } from '../../tables/definition.ts';
import { columnsInRow } from '../../tables/shape/plan.ts';
import { appendRows } from './append.ts';
import { type BackfillFolder, readBackfillFolder, type RowsFile } from './backfill-folder.ts';
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

/** Loads the folder of a backfill in one transaction of the caller's. */
export class BackfillStep {
  readonly counts: LoadCounts = noCounts();
  readonly #terms: LoadTerms;
  #refused = 0;

  constructor(terms: LoadTerms) {
    this.#terms = terms;
  }

  /** @param replaces earlier loads of it */
  async load(folder: BackfillFolder, replaces: readonly number[], onBatch: () => void): Promise<void> {
    const { database, tables } = this.#terms;
    const { counts } = this;
    await removeLoads(database, tables.names, replaces);
    const load = await nextLoad(database);
    for (const file of folder.rows) await this.#loadFile(folder.root, file, load, onBatch);
    if (folder.pulls !== null) await this.#applyPulls(folder, folder.pulls, load);
    counts.vanished += await removeVanished(database, tables, null);
    const hash = `${this.#refused > 0 ? REFUSED : ''}${folder.sha256}`;
    await writeLoad(database, {
      load,
      archive: folder.id,
      file: folder.file,
      // Read again by the next run.
      sha256: counts.problems > 0 ? '' : hash,
      shape: tables.shape,
      records: counts.records,
      sealed: 0,
      destroyed: 0,
    });
    counts.files += folder.rows.length;
    counts.replaced += replaces.length > 0 ? folder.rows.length : 0;
  }

  async #loadFile(root: string, { table, file }: RowsFile, load: number, onBatch: () => void): Promise<void> {
    const { tables, options } = this.#terms;
    const { definition } = tables.known.entry(table);
    const rows = new OrderedRows(definition);
    const send = async (): Promise<void> => {
      await this.#send(file, definition, rows, load);
      onBatch();
    };
    for await (const lines of cutLines(options.places.at(root).chunks(file))) {
      options.signal.throwIfAborted();
      for (const line of lines) {
        const reason = rows.add(line);
        if (reason === null) continue;
        this.counts.problems += 1;
        options.onProblem(file, line.number, reason);
      }
      if (rows.bytes >= BATCH_BYTES) await send();
    }
    await send();
  }

  /** Notes the pulls. An incomplete pull would remove rows that the service still has, so that then none counts. */
  async #applyPulls(folder: BackfillFolder, file: string, load: number): Promise<void> {
    const { database, options, tables } = this.#terms;
    const { places, onProblem } = options;
    const names = new Set(folder.rows.map(({ table }) => table));
    const pulls: Pull[] = [];
    for await (const lines of cutLines(places.at(folder.root).chunks(file))) {
      for (const { bytes, number, ended } of lines) {
        const pull = ended && bytes !== null ? parsePull(bytes.toString()) : null;
        if (pull !== null && names.has(pull.table)) pulls.push(pull);
        else {
          this.counts.problems += 1;
          onProblem(
            file,
            number,
            pull === null ? 'it is no line of a pull' : `${pull.table}.ndjson is missing`,
          );
        }
      }
    }
    const now = await readBackfillFolder(folder.root, places, tables.known);
    if (now?.sha256 !== folder.sha256) {
      this.counts.problems += 1;
      onProblem(
        folder.file,
        null,
        'its files were replaced while they were loaded; the next run loads them again',
      );
    }
    if (this.counts.problems === 0 && this.#refused === 0) return writePulls(database, load, pulls);
    onProblem(
      file,
      null,
      'not all rows of the folder are loaded: rows that have vanished at the service stay',
    );
  }

  async #send(file: string, table: TableDefinition, rows: OrderedRows, load: number): Promise<void> {
    const { lines, numbers } = rows.take();
    if (numbers.length === 0) return;
    const { options, database } = this.#terms;
    const refused = await appendRows(database, table, lines, load, (row, reason) => {
      const before = lines.subarray(0, row.byteOffset - lines.byteOffset);
      const line = numbers[before.toString('latin1').split('\n').length - 1] ?? 0;
      options.onReject({ table: table.name, code: 'refused', reason, file, line });
    });
    const { counts } = this;
    this.#refused += refused;
    counts.rejects += refused;
    counts.records += numbers.length;
    counts.rows[table.name] = (counts.rows[table.name] ?? 0) + numbers.length - refused;
  }
}

/** Rows of a file, with their members in the order of the shaper's rows, as databases take them. */
class OrderedRows {
  readonly #slots: ReadonlyMap<string, number>;
  readonly #out = new ByteWriter(64 * 1024);
  #numbers: number[] = [];

  constructor(definition: TableDefinition) {
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
