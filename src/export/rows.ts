import type { ArchiveItem } from '../archive/read.ts';
import { ByteWriter } from '../lib/byte-writer.ts';
import { JsonFault } from '../lib/json-text.ts';
import type { OnLeft, TableFields } from '../warehouse/learned/drift.ts';
import type { RowReject } from '../warehouse/shape/reject.ts';
import type { RowTarget } from '../warehouse/shape/row-target.ts';
import { Shaper } from '../warehouse/shape/shape.ts';
import type { Tables } from '../warehouse/tables.ts';
import { documentsIn, originOf } from './documents.ts';
import type { ExportFormat, Outputs } from './outputs.ts';
import type { ParquetFile } from './parquet/parquet-file.ts';

/** Rows are handed on in pieces of about this size; as columns, memory is looked at after so many records. */
const PIECE = 256 * 1024;
const LOOK = 256;

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
  readonly format: ExportFormat;
  onReject(reject: ExportReject): void;
  readonly onUnknown: OnLeft;
  /** An event of this type has no table, or a shape that its table does not know. */
  onWithoutTable(eventType: string): void;
}

/** Shapes records into rows and brings them to the files of their day. */
export class Rows {
  readonly #options: RowsOptions;
  readonly #names: readonly string[];
  /** Tables whose rows are lines. */
  readonly #lines: readonly string[];
  readonly #origin: ReturnType<typeof originOf>;
  /** Name in quotes of the member that is the document; null when there can be several. */
  readonly #member: Buffer | null;
  readonly #shaper: Shaper;
  #spare = new ByteWriter();
  /** Rows handed on so far, by table. */
  readonly #taken = new Map<string, number>();
  /** Files that take rows as columns, by table; none for NDJSON. */
  readonly #files = new Map<string, ParquetFile>();
  readonly #targets = new Map<string, RowTarget>();
  #sinceLook = 0;
  #folder: string | null = null;
  #at = { file: '', line: 0 };

  constructor(options: RowsOptions) {
    const { tables, table } = options;
    const entry = tables.get(table);
    if (entry === undefined) throw new TypeError(`there is no table ${table}`);
    this.#options = options;
    this.#names = tables.withNested(table);
    this.#lines = options.format === 'ndjson' ? this.#names : [];
    this.#origin = originOf(entry);
    const { member, each } = this.#origin;
    this.#member = member === null || each === 'array' ? null : Buffer.from(`"${member}"`);
    this.#shaper = new Shaper(entry, {
      tables: this.#names,
      ...(options.format === 'parquet' ? { targets: this.#targets } : {}),
      onReject: (reject) => options.onReject({ ...reject, ...this.#at }),
      onUnknown: options.onUnknown,
    });
  }

  /** Adds the rows of a record. Returns null when that is all; else a promise that has to be waited for. */
  add(item: ArchiveItem & { kind: 'record' }, outputs: Outputs): Promise<void> | null {
    const folder = this.#options.partition === 'dt' ? `dt=${dayOf(item.record.received_at)}` : '';
    if (folder !== this.#folder) return this.#addTo(folder, item, outputs);
    this.#shape(item);
    return this.#isDue() ? this.#handOn(outputs) : null;
  }

  async #addTo(folder: string, item: ArchiveItem & { kind: 'record' }, outputs: Outputs): Promise<void> {
    await this.flush(outputs);
    this.#folder = folder;
    await this.#findFiles(outputs);
    this.#shape(item);
    if (this.#isDue()) await this.#handOn(outputs);
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#shaper.met();
  }

  /** Hands on what is left. */
  async flush(outputs: Outputs): Promise<void> {
    for (const table of this.#lines) await this.#flush(table, outputs);
  }

  async #findFiles(outputs: Outputs): Promise<void> {
    if (this.#options.format !== 'parquet') return;
    for (const table of this.#names) {
      const file = await outputs.parquet(table, this.#folder ?? '');
      this.#files.set(table, file);
      this.#targets.set(table, file.columns);
    }
  }

  #isDue(): boolean {
    this.#sinceLook += 1;
    if (this.#sinceLook >= LOOK) return true;
    for (const file of this.#files.values()) if (file.isFull) return true;
    for (const table of this.#lines) if (this.#shaper.waiting(table) >= PIECE) return true;
    return false;
  }

  async #handOn(outputs: Outputs): Promise<void> {
    this.#sinceLook = 0;
    for (const file of this.#files.values()) if (file.isFull) await file.relieve();
    await this.#findFiles(outputs);
    for (const table of this.#lines)
      if (this.#shaper.waiting(table) >= PIECE) await this.#flush(table, outputs);
  }

  #shape({ file, line, record, text, body }: ArchiveItem & { kind: 'record' }): void {
    this.#at = { file, line };
    const { tables, table, onReject, onWithoutTable } = this.#options;
    const { id: event_id, event_type, received_at, team_id, user_id, client_user_id } = record;
    this.#shaper.about({ event_id, event_type, received_at, team_id, user_id, client_user_id });
    if (this.#origin.member === null) {
      if (tables.documentsOf(event_type).length === 0) onWithoutTable(event_type);
      this.#shaper.shape(text);
      return;
    }
    if (this.#member !== null && this.#shaper.shapeMember(body, this.#member)) return;
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
    await outputs.write(table, this.#folder ?? '', lines.view(), rows);
  }
}

/** `received_at` of a record is what its writer says; a folder is made of nothing but a day. */
function dayOf(receivedAt: string): string {
  const day = receivedAt.slice(0, 10);
  return /^\d{4}-\d{2}-\d{2}$/.test(day) ? day : '__HIVE_DEFAULT_PARTITION__';
}
