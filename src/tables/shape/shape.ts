import { isUtf8 } from 'node:buffer';
import { CLOSE_BRACKET, COMMA, OPEN_BRACE, skipWhite, unexpected } from '../../lib/json-text.ts';
import type { TableDefinition } from '../definition.ts';
import { documentsIn, unfolded } from '../documents.ts';
import type { OnExtraField, TableFields } from '../learned/field-sums.ts';
import type { TableEntry } from '../tables.ts';
import { EnvelopeValues, type RowEnvelope } from './envelope.ts';
import { ExtraFields } from './extra-fields.ts';
import { type Given, planRow } from './plan.ts';
import { QuickRow } from './quick-row.ts';
import { RowReader } from './read-row.ts';
import { InvalidRow, notAnObject, rejectOf, type RowReject } from './reject.ts';
import { RowIds } from './row-id.ts';
import type { RowPlan } from './row-plan.ts';
import { RowState } from './row-state.ts';
import { InnerRows, type RowTarget, writeRow } from './write-rows.ts';

export interface ShaperOptions {
  /** Tables whose rows are wanted, of those that the document makes; the other rows are not written. */
  readonly tables: readonly string[];
  /** Values of columns for which a document may have none, such as `user_id` or `_loaded_at`. */
  readonly given?: Given;
  /** Names the file of the documents; called for a row with an unknown key when no event carries its document. */
  readonly source?: () => string;
  /** Where the rows of each table go. */
  readonly targets: ReadonlyMap<string, RowTarget>;
  onReject(reject: RowReject): void;
  /** Called once for each field that goes to `extra`. */
  onUnknown?: OnExtraField;
}

/** Rows of one table that were shaped elsewhere by the same plan. */
export interface ReadyRows {
  readonly table: string;
  /** Lines of NDJSON. */
  readonly rows: Uint8Array;
  readonly count: number;
  /** In how many of them each column had a value of the document. */
  readonly filled: Uint32Array;
}

/** The member of a body that has the document. */
const MEMBER = Buffer.from('"data"');

/**
 * Shapes documents into rows, from bytes to bytes: what can be copied is not decoded, so numbers keep their text. The same
 * document gives the same rows however its JSON is written; only the order of what goes to `extra` differs.
 */
export class Shaper {
  /** How rows are made of a document. */
  readonly plan: RowPlan;
  readonly #options: ShaperOptions;
  readonly #row: RowState;
  readonly #inner = new Map<RowPlan, InnerRows>();
  /** By table, those whose rows are wanted. */
  readonly #wanted = new Map<string, RowState>();
  readonly #extraFields: ExtraFields;
  readonly #reader: RowReader;
  readonly #quick: QuickRow | null;
  readonly #document: TableDefinition;
  /** A document with a fault is left to another call, and nothing of it is rejected. */
  #isTrying = false;
  readonly #event = new EnvelopeValues();
  readonly #ids = new RowIds();
  /** Invalid rows inside a frame; rejected when the frame has rows at all. */
  readonly #refused: RowReject[] = [];

  /** @param entry any table that the documents make */
  constructor({ document }: TableEntry, { given = {}, ...options }: ShaperOptions) {
    this.#options = options;
    this.#document = document;
    if (options.source !== undefined) this.#ids.from(options.source);
    this.#extraFields = new ExtraFields(options.onUnknown);
    this.plan = planRow(document);
    this.#row = new RowState(this.plan, given);
    this.#quick = QuickRow.of(this.plan);
    const { ownRows, table } = this.plan;
    if (ownRows && options.tables.includes(table)) this.#wanted.set(table, this.#row);
    for (const { row } of this.plan.nested) {
      if (!options.tables.includes(row.table)) continue;
      const inner = new InnerRows(new RowState(row, given));
      this.#inner.set(row, inner);
      this.#wanted.set(row.table, inner.state);
    }
    this.#reader = new RowReader(this.#inner, this.#extraFields, (of, error) => {
      if (this.#isTrying) throw error;
      const reject = rejectOf(of, error);
      if (ownRows) options.onReject(reject);
      else this.#refused.push(reject);
    });
  }

  /** Rows so far, of each wanted table. */
  counts(): Record<string, number> {
    return Object.fromEntries(
      this.#options.tables.map((table) => [table, this.#wanted.get(table)?.rows ?? 0]),
    );
  }

  /** What the rows so far had, by table: values of columns, and fields that went to `extra`. */
  met(): TableFields[] {
    const extra = this.#extraFields.all();
    return Array.from(this.#wanted, ([table, { plan, rows, filled }]) => ({
      table,
      rows,
      filled: new Map(plan.columns.map(({ name }, slot) => [name, filled[slot] ?? 0])),
      extra: extra.filter((field) => field.table === table),
    }));
  }

  /** Counts rows that are in their target already. */
  adopt({ table, count, filled }: ReadyRows): void {
    const state = this.#wanted.get(table);
    if (state === undefined) return;
    state.rows += count;
    for (const [slot, times] of filled.entries()) state.filled[slot] = (state.filled[slot] ?? 0) + times;
  }

  /** Sets all counts to zero. */
  forget(): void {
    this.#extraFields.forget();
    for (const state of this.#wanted.values()) {
      state.rows = 0;
      state.filled.fill(0);
    }
  }

  /** Takes the event that carries the documents that follow; their rows have what it says. */
  about(event: RowEnvelope): void {
    this.#event.set(event);
    this.#ids.from(() => JSON.stringify([event.event_id, event.event_type, event.user_id]));
    this.#row.about(this.#event);
    for (const { state } of this.#inner.values()) state.about(this.#event);
  }

  /** Takes the offset of the next document in its text, in bytes. */
  at(offset: number): void {
    this.#ids.at(offset);
  }

  /**
   * Adds the rows of one document: an object, with nothing around it. A document that is not JSON, or whose own row is invalid,
   * has no rows; an invalid row inside it is rejected alone.
   * @returns false when it is valid JSON of another shape: a frame without rows in it. Then nothing is rejected either
   */
  shape(bytes: Buffer): boolean {
    if (this.#document.unfold === undefined) return this.#shape(bytes);
    return unfolded(bytes, this.#document.unfold)
      .map((document) => this.#shape(document))
      .includes(true);
  }

  #shape(bytes: Buffer): boolean {
    try {
      if (bytes[0] !== OPEN_BRACE) throw notAnObject(bytes);
      const end = this.#read(bytes, 0);
      if (end !== bytes.length) throw unexpected(bytes, end);
      this.#complete(bytes, bytes);
      if (!this.#hasShape()) return false;
      this.#refused.forEach((reject) => this.#options.onReject(reject));
      this.#write(bytes);
      return true;
    } catch (error) {
      const reject = rejectOf(this.plan.table, error);
      if (!this.plan.ownRows && reject.code === 'wrong_type') return false;
      this.#options.onReject(reject);
      return true;
    } finally {
      this.#refused.length = 0;
      this.#ids.next();
    }
  }

  /**
   * Tries to add the row of a document whose members are columns. With any fault in it, nothing is added or rejected.
   * @param isUsual called once it is read, with where the values stand by slot, as `RowState` has them
   * @returns false when it has to be shaped in another way
   */
  shapePlain(bytes: Buffer, isUsual: (bytes: Buffer, from: Int32Array, to: Int32Array) => boolean): boolean {
    const row = this.#row;
    return this.#try(bytes, () =>
      this.#quick?.read(bytes, row) === true && isUsual(bytes, row.from, row.to) ? bytes : null,
    );
  }

  /**
   * Tries to add the rows of a document that is an item of an array, so that its end need not be looked for. With any fault in
   * it, nothing is added or rejected.
   * @param bytes with zeros at their end, at which a document that is cut stops
   * @param at index of its opening brace
   * @returns index of the comma or bracket after it; 0 when it has to be shaped in another way, or is not all there
   */
  shapeItem(bytes: Buffer, at: number, longest: number): number {
    if (this.#document.unfold !== undefined) return 0;
    let next = 0;
    const isAdded = this.#try(bytes, () => {
      const end = this.#read(bytes, at);
      next = skipWhite(bytes, end);
      const isWhole = (bytes[next] === COMMA || bytes[next] === CLOSE_BRACKET) && next - at <= longest;
      return isWhole ? bytes.subarray(at, end) : null;
    });
    return isAdded ? next : 0;
  }

  /** The document is a whole archived record, and not in an event's body. */
  get takesRecords(): boolean {
    return this.#document.events?.member === null;
  }

  /**
   * Adds the rows of the documents in an event's body.
   * @returns false when one is missing or is of another shape: then nothing of it is rejected
   * @throws JsonFault when the body is not JSON
   */
  shapeBody(body: Buffer): boolean {
    if (this.#document.events === undefined) throw new TypeError(`${this.plan.table} is not made of events`);
    // Most bodies are valid: then the document is found and read in one step.
    if (
      this.#document.events.each === undefined &&
      this.#try(body, () => this.#reader.readMember(this.#row, body, MEMBER))
    )
      return true;
    const documents = documentsIn(body, this.#document.events);
    return !documents.map((document) => document !== null && this.shape(document)).includes(false);
  }

  /** @param read returns the document that it has read; null when it has to be shaped in another way */
  #try(bytes: Buffer, read: () => Buffer | null): boolean {
    this.#isTrying = true;
    try {
      const document = read();
      if (document === null) return false;
      this.#complete(bytes, document);
      if (!this.#hasShape()) return false;
      this.#write(bytes);
      return true;
    } catch (error) {
      // Throws what is no fault of the document.
      rejectOf(this.plan.table, error);
      return false;
    } finally {
      this.#isTrying = false;
    }
  }

  /** False for a frame that has no place for rows, or only invalid rows. */
  #hasShape(): boolean {
    if (this.plan.ownRows) return true;
    for (const { count } of this.#inner.values()) if (count > 0) return true;
    return this.#reader.foundRows && this.#refused.length === 0;
  }

  /** Returns the index after the document. */
  #read(bytes: Buffer, at: number): number {
    if (at === 0 && this.#quick?.read(bytes, this.#row) === true) return bytes.length;
    return this.#reader.read(this.#row, bytes, at);
  }

  /** @param document the part of `bytes` that has been read @throws InvalidRow */
  #complete(bytes: Buffer, document: Buffer): void {
    if (!isUtf8(document)) throw new InvalidRow('not_utf8', 'not UTF-8');
    this.#row.complete(bytes);
    this.#ids.begin(document);
  }

  #write(bytes: Buffer): void {
    const row = this.#row;
    if (this.plan.ownRows && this.#wanted.has(this.plan.table))
      writeRow(this.#targetOf(this.plan.table), row, bytes, this.#ids);
    for (const rows of this.#inner.values())
      if (rows.count > 0) rows.write(this.#targetOf(rows.state.plan.table), row, bytes, this.#ids);
  }

  #targetOf(table: string): RowTarget {
    const target = this.#options.targets.get(table);
    if (target === undefined) throw new Error(`there is no target for ${table}`);
    return target;
  }
}
