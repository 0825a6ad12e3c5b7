import { hash } from 'node:crypto';
import type { ArchiveRecord } from '../core/archive.ts';
import { documentsIn, originOf } from '../export/documents.ts';
import { ByteWriter } from '../lib/byte-writer.ts';
import { JsonFault } from '../lib/json-text.ts';
import type { TableDefinition } from '../warehouse/definition.ts';
import type { RowReject } from '../warehouse/reject.ts';
import { Shaper } from '../warehouse/shape.ts';
import type { TableEntry, Tables } from '../warehouse/tables.ts';
import type { Database } from './database.ts';

/** An event as an archive has it. */
export interface LoadedRecord {
  readonly record: ArchiveRecord;
  readonly body: Buffer;
  /** The record's line without its line break. */
  readonly text: Buffer;
}

export interface ShapesOptions {
  onReject(reject: RowReject): void;
  onUnknown(table: string, path: string): void;
  /** An event of this type has no typed table among all that there are, or a shape that its table does not know. */
  onWithoutTable(eventType: string): void;
}

/** What tells an event from every other, as 32 hex digits. */
export function keyOf({ record: { source, id }, body }: Omit<LoadedRecord, 'text'>): string {
  return hash(
    'sha256',
    `${source.length}:${source}${id.length}:${id}${hash('sha256', body, 'hex')}`,
    'hex',
  ).slice(0, 32);
}

/** What becomes rows of one document's tables. */
interface Shape {
  /** One of the tables; any does. */
  readonly entry: TableEntry;
  readonly definitions: readonly TableDefinition[];
  readonly shaper: Shaper;
}

/** Shapes events into the rows of several tables, which wait until `append` takes them to a database. */
export class Shapes {
  readonly #tables: Tables;
  readonly #options: ShapesOptions;
  readonly #shapes: readonly Shape[];
  #spare = new ByteWriter();
  #rejected: RowReject | null = null;

  constructor(tables: Tables, entries: readonly TableEntry[], options: ShapesOptions) {
    this.#tables = tables;
    this.#options = options;
    this.#shapes = [...Map.groupBy(entries, ({ document }) => document).values()].map((ofIt) => {
      const definitions = ofIt.map(({ definition }) => definition);
      const entry = ofIt[0] as TableEntry;
      const shaper = new Shaper(entry, {
        tables: definitions.map(({ name }) => name),
        onReject: (reject) => (this.#rejected = reject),
        onUnknown: (table, path) => options.onUnknown(table, path),
      });
      return { entry, definitions, shaper };
    });
  }

  /** Rows so far, by table. */
  counts(): Record<string, number> {
    return Object.assign({}, ...this.#shapes.map(({ shaper }) => shaper.counts())) as Record<string, number>;
  }

  add(record: LoadedRecord): void {
    const { event_type } = record.record;
    for (const { entry, shaper } of this.#shapes) {
      if (!this.#tables.takes(entry, event_type)) continue;
      shaper.about({ ...record.record, event_id: record.record.id });
      if (originOf(entry).member === null) this.#event(record, shaper);
      else this.#documents(record, entry, shaper);
    }
  }

  /** Brings the rows that wait to the database. */
  async append(database: Database, load: number): Promise<void> {
    for (const { definitions, shaper } of this.#shapes) {
      for (const definition of definitions) {
        if (shaper.waiting(definition.name) === 0) continue;
        const lines = shaper.take(definition.name, this.#spare);
        this.#spare = lines;
        await database.append(definition, lines.view(), load);
      }
    }
  }

  /** The row that is the event itself: there is one whatever is in it. */
  #event({ record, text, body }: LoadedRecord, shaper: Shaper): void {
    this.#rejected = null;
    shaper.shape(text);
    if (this.#rejected === null) return;
    // Nested too deeply, perhaps: the exact bytes are kept all the same.
    this.#rejected = null;
    const bare = { ...record, event: null, body_base64: body.toString('base64') };
    shaper.shape(Buffer.from(JSON.stringify(bare)));
    this.#tell();
  }

  #documents({ record, body }: LoadedRecord, entry: TableEntry, shaper: Shaper): void {
    try {
      for (const document of documentsIn(body, originOf(entry)) ?? [null]) {
        this.#rejected = null;
        if (document === null || !shaper.shape(document)) this.#options.onWithoutTable(record.event_type);
        this.#tell();
      }
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      this.#options.onReject({ table: entry.definition.name, code: 'not_json', reason: error.message });
    }
  }

  #tell(): void {
    if (this.#rejected !== null) this.#options.onReject(this.#rejected);
  }
}
