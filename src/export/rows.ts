import type { ArchiveItem } from '../archive/read.ts';
import { ByteWriter } from '../lib/byte-writer.ts';
import { JsonFault } from '../lib/json-text.ts';
import type { RowReject } from '../warehouse/reject.ts';
import { Shaper } from '../warehouse/shape.ts';
import { TABLES } from '../warehouse/tables.ts';
import { documentOf, originOf } from './documents.ts';
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
  /** Of the same documents. */
  readonly tables: readonly [string, ...string[]];
  readonly partition: 'dt' | 'none';
  onReject(reject: ExportReject): void;
  onUnknown(table: string, path: string): void;
}

/** Shapes records into rows and brings them to the files of their day. */
export class Rows {
  readonly #options: RowsOptions;
  readonly #origin: ReturnType<typeof originOf>;
  readonly #shaper: Shaper;
  #spare = new ByteWriter();
  /** Rows handed on so far, by table. */
  readonly #taken = new Map<string, number>();
  #folder = '';
  #at = { file: '', line: 0 };

  constructor(options: RowsOptions) {
    const [table] = options.tables;
    const entry = TABLES.get(table);
    if (entry === undefined) throw new TypeError(`there is no table ${table}`);
    this.#options = options;
    this.#origin = originOf(table);
    this.#shaper = new Shaper(entry, {
      tables: options.tables,
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
    for (const table of this.#options.tables) {
      if (this.#shaper.waiting(table) >= PIECE) await this.#flush(table, outputs);
    }
  }

  /** Hands on what is left. */
  async flush(outputs: Outputs): Promise<void> {
    for (const table of this.#options.tables) await this.#flush(table, outputs);
  }

  #shape(item: ArchiveItem & { kind: 'record' }): void {
    const [table] = this.#options.tables;
    const reject = (reason: string): void => {
      this.#options.onReject({ table, code: 'not_json', reason, ...this.#at });
    };
    try {
      const document = documentOf(item, this.#origin);
      if (document === null) reject(`the event has no ${this.#origin.member ?? 'body'}`);
      else this.#shaper.shape(document);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      reject(error.message);
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
