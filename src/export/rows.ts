import type { RecordEnvelope } from '../core/archive-record.ts';
import { JsonFault, CLOSE_BRACE, COLON, COMMA, OPEN_BRACE, QUOTE, skipString } from '../lib/json-text.ts';
import type { ShapesOptions } from '../tables/database/shapes.ts';
import type { TableFields } from '../tables/learned/field-sums.ts';
import type { RowPlan } from '../tables/shape/row-plan.ts';
import type { RowReject } from '../tables/shape/reject.ts';
import type { RowTarget } from '../tables/shape/write-rows.ts';
import { Shaper } from '../tables/shape/shape.ts';
import { GatheredRows, type GatheredTerms } from './gathered-rows.ts';
import type { RowBatch } from './row-file.ts';

/** The members of a record in their order. */
const NAMES =
  'id source received_at event_type team_id user_id client_user_id headers event body_base64'.split(' ');
const [RECEIVED_AT, EVENT_TYPE] = [2, 3];
const [TEAM, HEADERS, EVENT] = [4, 7, 8];
const NULL = 'null'.length;
/** Partitions whose rows are gathered at the same time. */
const MOST_PARTITIONS = 32;

export type ExportFormat = GatheredTerms['format'];

/** What an export makes: files of rows, or Parquet files that a Delta table lists. */
export type OutputFormat = ExportFormat | 'delta';

/** A record that makes no row, and its place in the archive. */
export interface ExportReject extends RowReject {
  /** Relative to the archive. */
  readonly file: string;
  readonly line: number;
}

export interface RowTerms extends GatheredTerms {
  readonly partition: 'dt' | 'none';
}

export interface RowsHost extends ShapesOptions {
  onReject(reject: ExportReject): void;
}

/** A record of the archive, and its place there. */
export interface ExportedRecord {
  readonly file: string;
  readonly line: number;
  readonly record: RecordEnvelope;
  readonly text: Buffer;
  /** The event as it was signed. */
  readonly body: Buffer;
}

/** Shapes records into rows, each in the partition of its day. */
export class Rows {
  readonly #terms: RowTerms;
  readonly #host: RowsHost;
  readonly #shaper: Shaper;
  readonly #gathered: GatheredRows;
  readonly #targets = new Map<string, RowTarget>();
  readonly #batches: RowBatch[] = [];
  #folder: string | null = null;
  #at = { file: '', line: 0 };
  /** Rows have a record's members as columns of Parquet, so that `addPlain` can be used. */
  readonly #takesPlain: boolean;
  /** Event type of the last plain record, and whether it has a table. */
  #type = '';
  #hasTable = true;

  constructor(terms: RowTerms, host: RowsHost) {
    const { tables, table } = terms;
    const entry = tables.entry(table);
    this.#terms = terms;
    this.#host = host;
    this.#gathered = new GatheredRows(terms);
    this.#shaper = new Shaper(entry, {
      tables: tables.withNested(table),
      targets: this.#targets,
      onReject: (reject) => host.onReject({ ...reject, ...this.#at }),
      onUnknown: host.onUnknown,
    });
    this.#takesPlain =
      this.#shaper.takesRecords && terms.format === 'parquet' && isOfRecords(this.#shaper.plan);
  }

  /**
   * Adds a record that is written as most are, without parsing it.
   * @returns false when it has to be parsed and added with `add`
   */
  addPlain(text: Buffer): boolean {
    if (!this.#takesPlain || !this.#shaper.shapePlain(text, this.#entersPlain)) return false;
    if (!this.#hasTable) this.#host.onWithoutTable(this.#type);
    return true;
  }

  readonly #entersPlain = (bytes: Buffer, from: Int32Array, to: Int32Array): boolean => {
    if (!isPlainRecord(bytes, from, to)) return false;
    const at = (from[RECEIVED_AT] as number) + 1;
    const folder = this.#folder;
    if (this.#terms.partition === 'none') {
      if (folder !== '') this.#enter('');
    } else if (folder === null || !isText(folder, DAY_AT, bytes, at, at + DAY))
      this.#enter(`dt=${bytes.toString('latin1', at, at + DAY)}`);
    const [typeFrom, typeTo] = [(from[EVENT_TYPE] as number) + 1, (to[EVENT_TYPE] as number) - 1];
    if (!isText(this.#type, 0, bytes, typeFrom, typeTo)) {
      this.#type = bytes.toString('utf8', typeFrom, typeTo);
      this.#hasTable = this.#terms.tables.documentsOf(this.#type).length > 0;
    }
    return true;
  };

  add(item: ExportedRecord): void {
    const folder = this.#terms.partition === 'dt' ? `dt=${dayOf(item.record.received_at)}` : '';
    if (folder !== this.#folder) this.#enter(folder);
    this.#shape(item);
  }

  /** Takes all rows so far, in buffers of their own, and what they had, by table. */
  take(): { batches: RowBatch[]; met: TableFields[] } {
    const met = this.#shaper.met();
    this.#folder = null;
    this.#shaper.forget();
    return { batches: [...this.#batches.splice(0), ...this.#gathered.take()], met };
  }

  #enter(folder: string): void {
    if (this.#gathered.partitions >= MOST_PARTITIONS) this.#batches.push(...this.#gathered.take());
    this.#folder = folder;
    for (const [table, target] of this.#gathered.of(folder)) this.#targets.set(table, target);
  }

  #shape({ file, line, record, text, body }: ExportedRecord): void {
    this.#at = { file, line };
    const { tables, table, format } = this.#terms;
    const { onReject, onWithoutTable } = this.#host;
    const { id: event_id, event_type, received_at, team_id, user_id, client_user_id } = record;
    const shaper = this.#shaper;
    // In Parquet, columns of the envelope are twins of the record's.
    if (!shaper.takesRecords || format === 'ndjson')
      shaper.about({ event_id, event_type, received_at, team_id, user_id, client_user_id });
    try {
      const hasTable = shaper.takesRecords
        ? tables.documentsOf(event_type).length > 0
        : shaper.shapeBody(body);
      if (!hasTable) onWithoutTable(event_type);
      if (shaper.takesRecords) shaper.shape(text);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      onReject({ table, code: 'not_json', reason: error.message, ...this.#at });
    }
  }
}

const DAY = 'YYYY-MM-DD'.length;
const DAY_AT = 'dt='.length;

/** True when the text from `at` on is these bytes, all of them ASCII. */
function isText(text: string, at: number, bytes: Uint8Array, from: number, to: number): boolean {
  if (text.length - at !== to - from) return false;
  for (let i = from; i < to; i += 1) if (text.charCodeAt(at + i - from) !== bytes[i]) return false;
  return true;
}

/** The day of a record; `received_at` can be any text, so others get the name that Hive has for null. */
function dayOf(receivedAt: string): string {
  const day = receivedAt.slice(0, 10);
  return /^\d{4}-\d{2}-\d{2}$/.test(day) ? day : '__HIVE_DEFAULT_PARTITION__';
}

/** True when the columns are a record's members in its order. */
function isOfRecords({ columns }: RowPlan): boolean {
  return NAMES.every((name, slot) => columns[slot]?.name === name);
}

/**
 * True for a record that is written as most are: all members in their order, no white space, and escapes only in the event and its
 * headers. `parseEnvelope` would read the same.
 * @param from first byte of each member's value; negative for null and for missing ones
 * @param to the byte after it, negative when it may have escapes
 */
function isPlainRecord(bytes: Uint8Array, from: Int32Array, to: Int32Array): boolean {
  let at = 1;
  for (let slot = 0; slot <= EVENT; slot += 1) {
    at += (NAMES[slot] as string).length + '"":'.length;
    const start = from[slot] as number;
    const end = to[slot] as number;
    if (start < 0) {
      if (slot < TEAM || slot >= HEADERS) return false;
      at += NULL;
    } else {
      if (start !== at || (end < 0 && slot < HEADERS)) return false;
      at = Math.abs(end);
    }
    at += 1;
  }
  if (at !== bytes.length || bytes[from[EVENT] as number] !== OPEN_BRACE) return false;
  return isOfTexts(bytes, from[HEADERS] as number);
}

/** True for an object of texts, without white space. */
function isOfTexts(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== OPEN_BRACE) return false;
  if (bytes[at + 1] === CLOSE_BRACE) return true;
  let i = at;
  do {
    if (bytes[i + 1] !== QUOTE) return false;
    i = Math.abs(skipString(bytes, i + 1));
    if (bytes[i] !== COLON || bytes[i + 1] !== QUOTE) return false;
    i = Math.abs(skipString(bytes, i + 1));
  } while (bytes[i] === COMMA);
  return bytes[i] === CLOSE_BRACE;
}
