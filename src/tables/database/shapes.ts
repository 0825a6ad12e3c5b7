import { hash } from 'node:crypto';
import type { ArchiveRecord } from '../../core/archive.ts';
import { JsonFault } from '../../lib/json-text.ts';
import type { OnExtraField, TableFields } from '../learned/field-sums.ts';
import type { RowReject } from '../shape/reject.ts';
import { Shaper } from '../shape/shape.ts';
import type { TableEntry, Tables } from '../tables.ts';
import type { Database, GatheredRows, RowBatch } from './database.ts';

/** An event as an archive has it. */
export interface LoadedRecord {
  readonly record: ArchiveRecord;
  readonly body: Buffer;
  /** The record's line without its line break. */
  readonly text: Buffer;
}

export interface ShapesOptions {
  readonly onUnknown: OnExtraField;
  /** Called for an event whose type has no table, or whose shape its table does not know. */
  onWithoutTable(eventType: string): void;
}

/** Rows of records, by table. */
export interface ShapedRows {
  readonly tables: readonly (RowBatch & {
    /** Of each record, the index after its last row. */
    readonly ends: Uint32Array;
  })[];
  /** Documents that made no row, each with the index of its record. */
  readonly rejects: readonly (RowReject & { readonly nth: number })[];
}

/** Identifies an event, as 32 hex digits. */
export function keyOf({ record: { source, id }, body }: Omit<LoadedRecord, 'text'>): string {
  const text = `${source.length}:${source}${id.length}:${id}${hash('sha256', body, 'hex')}`;
  return hash('sha256', text, 'hex').slice(0, 32);
}

/** The tables of one document. */
interface Shape {
  /** One of the tables. */
  readonly entry: TableEntry;
  readonly rows: readonly GatheredRows[];
  readonly shaper: Shaper;
}

/** Shapes events into the rows of several tables, batch by batch. */
export class Shapes {
  readonly #tables: Tables;
  readonly #options: ShapesOptions;
  readonly #shapes: readonly Shape[];
  /** Of the record that is being shaped. */
  #rejected: RowReject[] = [];

  constructor(
    tables: Tables,
    entries: readonly TableEntry[],
    database: Pick<Database, 'gather'>,
    options: ShapesOptions,
  ) {
    this.#tables = tables;
    this.#options = options;
    this.#shapes = [...Map.groupBy(entries, ({ document }) => document).values()].map((ofDocument) => {
      const entry = ofDocument[0] as TableEntry;
      const rows = ofDocument.map(({ definition }) => database.gather(definition));
      const targets = new Map(rows.map((one) => [one.definition.name, one]));
      const shaper = new Shaper(entry, {
        tables: [...targets.keys()],
        targets,
        onReject: (reject) => this.#rejected.push(reject),
        onUnknown: options.onUnknown,
      });
      return { entry, rows, shaper };
    });
  }

  shape(records: readonly LoadedRecord[]): ShapedRows {
    const gathered = this.#shapes.flatMap(({ rows }) =>
      rows.map((of) => ({ of, ends: new Uint32Array(records.length) })),
    );
    const rejects: ShapedRows['rejects'][number][] = [];
    for (const [nth, record] of records.entries()) {
      for (const reject of this.#rejectsOf(record)) rejects.push({ ...reject, nth });
      for (const { of, ends } of gathered) ends[nth] = of.rows;
    }
    const tables = gathered.flatMap(({ of, ends }) => (of.rows > 0 ? [{ ...of.take(), ends }] : []));
    return { tables, rejects };
  }

  /** What the rows had, by table; rows that were shaped twice count twice. */
  met(): TableFields[] {
    return this.#shapes.flatMap(({ shaper }) => shaper.met());
  }

  #rejectsOf(record: LoadedRecord): RowReject[] {
    const { event_type, id: event_id } = record.record;
    this.#rejected = [];
    for (const { entry, shaper } of this.#shapes) {
      if (!this.#tables.takes(entry, event_type)) continue;
      shaper.about({ ...record.record, event_id });
      if (shaper.takesRecords) this.#addRecord(record, shaper);
      else this.#addBody(record, entry, shaper);
    }
    return this.#rejected;
  }

  /** Every event has a row in `events`. One that is nested too deeply, say, has its exact bytes instead of `event`. */
  #addRecord({ record, text, body }: LoadedRecord, shaper: Shaper): void {
    const before = this.#rejected.length;
    shaper.shape(text);
    if (this.#rejected.length === before) return;
    this.#rejected.length = before;
    const bare = { ...record, event: null, body_base64: body.toString('base64') };
    shaper.shape(Buffer.from(JSON.stringify(bare)));
  }

  #addBody({ record, body }: LoadedRecord, { definition }: TableEntry, shaper: Shaper): void {
    try {
      if (!shaper.shapeBody(body)) this.#options.onWithoutTable(record.event_type);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      this.#rejected.push({ table: definition.name, code: 'not_json', reason: error.message });
    }
  }
}
