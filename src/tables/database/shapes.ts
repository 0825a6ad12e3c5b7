import { hash } from 'node:crypto';
import type { ArchiveRecord } from '../../core/archive.ts';
import { documentsIn, originOf } from '../documents.ts';
import { ByteWriter } from '../../lib/byte-writer.ts';
import { JsonFault } from '../../lib/json-text.ts';
import type { TableDefinition } from '../definition.ts';
import type { OnExtraField, TableFields } from '../learned/field-sums.ts';
import type { RowReject } from '../shape/reject.ts';
import { linesOf, type RowLines } from '../shape/row-lines.ts';
import { Shaper } from '../shape/shape.ts';
import type { TableEntry, Tables } from '../tables.ts';
import type { Database } from './database.ts';

/** An event as an archive has it. */
export interface LoadedRecord {
  readonly record: ArchiveRecord;
  readonly body: Buffer;
  /** The record's line without its line break. */
  readonly text: Buffer;
}

export interface ShapesOptions {
  readonly onUnknown: OnExtraField;
  /** An event of this type has no typed table, or a shape that its table does not know. */
  onWithoutTable(eventType: string): void;
}

/** Rows that were shaped and are in no database yet. */
export interface ShapedRows {
  readonly tables: readonly {
    readonly definition: TableDefinition;
    readonly rows: number;
    readonly lines: ByteWriter;
  }[];
  /** What made no row, each with the place of its record among those that were added. */
  readonly rejects: readonly (RowReject & { readonly nth: number })[];
}

/** What tells an event from every other, as 32 hex digits. */
export function keyOf({ record: { source, id }, body }: Omit<LoadedRecord, 'text'>): string {
  return hash(
    'sha256',
    `${source.length}:${source}${id.length}:${id}${hash('sha256', body, 'hex')}`,
    'hex',
  ).slice(0, 32);
}

/** Where documents stand in a body, as it is written there. */
const MEMBER = Buffer.from('"data"');

/** What becomes rows of one document's tables. */
interface Shape {
  /** One of the tables; any does. */
  readonly entry: TableEntry;
  readonly definitions: readonly TableDefinition[];
  readonly lines: ReadonlyMap<string, RowLines>;
  readonly shaper: Shaper;
}

/** Shapes events into the rows of several tables, batch by batch. */
export class Shapes {
  readonly #tables: Tables;
  readonly #options: ShapesOptions;
  readonly #shapes: readonly Shape[];
  /** Buffers that no batch uses. */
  readonly #spare: ByteWriter[] = [];
  /** Of the document in hand. */
  #rejected: RowReject[] = [];
  #rejects: (RowReject & { nth: number })[] = [];

  constructor(tables: Tables, entries: readonly TableEntry[], options: ShapesOptions) {
    this.#tables = tables;
    this.#options = options;
    this.#shapes = [...Map.groupBy(entries, ({ document }) => document).values()].map((ofIt) => {
      const definitions = ofIt.map(({ definition }) => definition);
      const entry = ofIt[0] as TableEntry;
      const lines = linesOf(definitions);
      const shaper = new Shaper(entry, {
        tables: [...lines.keys()],
        targets: lines,
        onReject: (reject) => this.#rejected.push(reject),
        onUnknown: options.onUnknown,
      });
      return { entry, definitions, lines, shaper };
    });
  }

  /** The rows of a batch. They are the caller's until it releases them. */
  shape(records: readonly LoadedRecord[]): ShapedRows {
    this.#rejects = [];
    for (const [nth, record] of records.entries()) this.#add(record, nth);
    const tables = this.#shapes.flatMap(({ definitions, lines }) =>
      definitions.flatMap((definition) => {
        const made = lines.get(definition.name);
        if (made === undefined || made.rows === 0) return [];
        return { definition, ...made.take(this.#spare.pop() ?? new ByteWriter()) };
      }),
    );
    return { tables, rejects: this.#rejects };
  }

  /** What the rows had, by table; rows that were shaped twice count twice. */
  met(): TableFields[] {
    return this.#shapes.flatMap(({ shaper }) => shaper.met());
  }

  release({ tables }: ShapedRows): void {
    for (const { lines } of tables) this.#spare.push(lines);
  }

  #add(record: LoadedRecord, nth: number): void {
    const { event_type } = record.record;
    const about = { ...record.record, event_id: record.record.id };
    for (const { entry, shaper } of this.#shapes) {
      if (!this.#tables.takes(entry, event_type)) continue;
      shaper.about(about);
      if (originOf(entry).member === null) this.#event(record, shaper, nth);
      else this.#documents(record, entry, shaper, nth);
    }
  }

  /** The row that is the event itself: there is one whatever is in it. */
  #event({ record, text, body }: LoadedRecord, shaper: Shaper, nth: number): void {
    this.#rejected = [];
    shaper.shape(text);
    if (this.#rejected.length === 0) return;
    // Nested too deeply, perhaps: the exact bytes are kept all the same.
    this.#rejected = [];
    const bare = { ...record, event: null, body_base64: body.toString('base64') };
    shaper.shape(Buffer.from(JSON.stringify(bare)));
    this.#note(nth);
  }

  #documents({ record, body }: LoadedRecord, entry: TableEntry, shaper: Shaper, nth: number): void {
    const origin = originOf(entry);
    // Mostly all is well with the document, and it is found and read in one pass.
    if (origin.each === undefined && shaper.shapeMember(body, MEMBER)) return;
    try {
      for (const document of documentsIn(body, origin)) {
        this.#rejected = [];
        if (document === null || !shaper.shape(document)) this.#options.onWithoutTable(record.event_type);
        this.#note(nth);
      }
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      this.#rejects.push({ table: entry.definition.name, code: 'not_json', reason: error.message, nth });
    }
  }

  #note(nth: number): void {
    for (const reject of this.#rejected) this.#rejects.push({ ...reject, nth });
  }
}

/** Told of each row that a database does not take, as a line. */
export type OnRefused = (table: TableDefinition, line: Buffer, reason: string) => void;

/** Brings shaped rows to a database, all that it takes. @returns how many, by table */
export async function appendRows(
  database: Database,
  { tables }: ShapedRows,
  load: number,
  onRefused: OnRefused,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { definition, rows, lines } of tables)
    counts[definition.name] = rows - (await appendTaken(database, definition, lines.view(), load, onRefused));
  return counts;
}

const LINE_FEED = 10;

/** @returns how many rows the database refused */
async function appendTaken(
  database: Database,
  table: TableDefinition,
  lines: Buffer,
  load: number,
  onRefused: OnRefused,
): Promise<number> {
  const reason = await database.tryAppend(table, lines, load);
  if (reason === null) return 0;
  // The halves, until what is refused is one row.
  const half = lines.lastIndexOf(LINE_FEED, lines.length / 2) + 1 || lines.indexOf(LINE_FEED) + 1;
  if (half === lines.length) {
    onRefused(table, lines, reason);
    return 1;
  }
  const before = await appendTaken(database, table, lines.subarray(0, half), load, onRefused);
  return before + (await appendTaken(database, table, lines.subarray(half), load, onRefused));
}

/**
 * The rows of the events that are claimed, when not all are: the rows of all have been shaped while the database was asked.
 */
export function rowsOfClaimed<T extends LoadedRecord>(
  shapes: Shapes,
  made: ShapedRows,
  records: readonly T[],
  keys: readonly string[],
  claimed: ReadonlySet<string>,
): { readonly rows: ShapedRows; readonly records: readonly T[] } {
  if (claimed.size === records.length) return { rows: made, records };
  shapes.release(made);
  const left = new Set(claimed);
  const own = records.filter((_, nth) => left.delete(keys[nth] ?? ''));
  return { rows: shapes.shape(own), records: own };
}
