import type { ArchiveItem } from '../archive/read.ts';
import { ByteWriter } from '../lib/byte-writer.ts';
import { JsonFault } from '../lib/json-text.ts';
import type { TableFields } from '../warehouse/drift.ts';
import type { RowReject } from '../warehouse/reject.ts';
import { Shaper } from '../warehouse/shape.ts';
import type { Tables } from '../warehouse/tables.ts';
import { documentsIn, originOf } from './documents.ts';
import type { Outputs } from './outputs.ts';

/** Rows are handed on in pieces of about this size. */
const PIECE = 256 * 1024;

/** A record that makes no row, and where it stands. */
export interface ExportReject extends RowReject {
  /** Relative to the archive. */
  readonly file: string;
  readonly line: number;
}

export interface RowsOptions {
  readonly tables: Tables;
  /** The tables nested in it come along. */
  readonly table: string;
  readonly partition: 'dt' | 'none';
  onReject(reject: ExportReject): void;
  onUnknown(table: string, path: string): void;
  /** An event of this type has no table, or a shape that its table does not know. */
  onWithoutTable(eventType: string): void;
}

/** Shapes records into rows and brings them to the files of their day. */
export class Rows {
  readonly #options: RowsOptions;
  readonly #names: readonly string[];
  readonly #origin: ReturnType<typeof originOf>;
  readonly #shaper: Shaper;
  #spare = new ByteWriter();
  /** Rows handed on so far, by table. */
  readonly #taken = new Map<string, number>();
  #folder = '';
  #at = { file: '', line: 0 };

  constructor(options: RowsOptions) {
    const { tables, table } = options;
    const entry = tables.get(table);
    if (entry === undefined) throw new TypeError(`there is no table ${table}`);
    this.#options = options;
    this.#names = tables.withNested(table);
    this.#origin = originOf(entry);
    this.#shaper = new Shaper(entry, {
      tables: this.#names,
      onReject: (reject) => options.onReject({ ...reject, ...this.#at }),
      onUnknown: (name, path) => options.onUnknown(name, path),
    });
  }

  async add(item: ArchiveItem & { kind: 'record' }, outputs: Outputs): Promise<void> {
    const { file, line, record } = item;
    const folder = this.#options.partition === 'dt' ? `dt=${dayOf(record.received_at)}` : '';
    if (folder !== this.#folder) await this.flush(outputs);
    this.#folder = folder;
    this.#at = { file, line };
    this.#shape(item);
    for (const table of this.#names) {
      if (this.#shaper.waiting(table) >= PIECE) await this.#flush(table, outputs);
    }
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#shaper.met();
  }

  /** Hands on what is left. */
  async flush(outputs: Outputs): Promise<void> {
    for (const table of this.#names) await this.#flush(table, outputs);
  }

  #shape({ record, text, body }: ArchiveItem & { kind: 'record' }): void {
    const { tables, table, onReject, onWithoutTable } = this.#options;
    const { id: event_id, event_type } = record;
    this.#shaper.about({ ...record, event_id });
    if (this.#origin.member === null) {
      if (tables.documentsOf(event_type).length === 0) onWithoutTable(event_type);
      this.#shaper.shape(text);
      return;
    }
    try {
      const known = documentsIn(body, this.#origin).map(
        (document) => document !== null && this.#shaper.shape(document),
      );
      if (known.includes(false)) onWithoutTable(event_type);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      onReject({ table, code: 'not_json', reason: error.message, ...this.#at });
    }
  }

  async #flush(table: string, outputs: Outputs): Promise<void> {
    if (this.#shaper.waiting(table) === 0) return;
    const lines = this.#shaper.take(table, this.#spare);
    this.#spare = lines;
    const total = this.#shaper.counts()[table] ?? 0;
    const rows = total - (this.#taken.get(table) ?? 0);
    this.#taken.set(table, total);
    await outputs.write(table, this.#folder, lines.view(), rows);
  }
}

/** `received_at` of a record is what its writer says; a folder is made of nothing but a day. */
function dayOf(receivedAt: string): string {
  const day = receivedAt.slice(0, 10);
  return /^\d{4}-\d{2}-\d{2}$/.test(day) ? day : '__HIVE_DEFAULT_PARTITION__';
}
