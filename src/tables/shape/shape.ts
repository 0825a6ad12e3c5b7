import { isUtf8 } from 'node:buffer';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  skipColon,
  skipKey,
  skipValue,
  skipWhite,
  unexpected,
} from '../../lib/json-text.ts';
import type { TableFields } from '../learned/field-sums.ts';
import type { TableEntry } from '../tables.ts';
import { completeRow, RowState } from './row-state.ts';
import { EnvelopeValues, type RowEnvelope } from './envelope.ts';
import { LeftFields } from './left-fields.ts';
import { planRow, type RowPlan } from './plan.ts';
import { QuickRow } from './quick-row.ts';
import { RowReader } from './read-row.ts';
import { InvalidRow, notAnObject, rejectOf, type RowReject } from './reject.ts';
import { RowOutputs } from './row-outputs.ts';
import { RowIds } from './row-id.ts';
import type { ReadyRows, ShaperOptions } from './shaper-options.ts';
import { unfold } from './unfold.ts';

/**
 * Shapes documents into rows, from bytes to bytes: what can be copied is not decoded, so numbers keep their text. The
 * same document gives the same rows however it was written down; only the order of what goes to `extra` follows it.
 */
export class Shaper {
  readonly #options: ShaperOptions;
  readonly #outputs: RowOutputs;
  readonly #row: RowState;
  readonly #inner = new Map<RowPlan, RowState>();
  readonly #left: LeftFields;
  readonly #reader: RowReader;
  readonly #quick: QuickRow | null;
  readonly #unfold: string | undefined;
  /** What is wrong is thrown, not told. */
  #trying = false;
  readonly #event = new EnvelopeValues();
  readonly #ids = new RowIds();
  /** Rows inside a frame that are not to be; told when there are rows at all. */
  readonly #refused: RowReject[] = [];
  /** The place of the rows inside the document has been seen. */
  #framed = false;

  /** @param entry any table that the documents make */
  constructor({ document }: TableEntry, options: ShaperOptions) {
    this.#options = options;
    this.#unfold = document.unfold;
    if (options.source !== undefined) this.#ids.from(options.source);
    this.#left = new LeftFields(options.onUnknown);
    this.#outputs = new RowOutputs(options.tables, options.targets);
    const plan = planRow(document, options.given ?? {});
    this.#row = new RowState(plan);
    this.#quick = QuickRow.of(plan);
    for (const { row } of plan.nested) {
      if (!this.#outputs.has(row.table)) continue;
      const state = new RowState(row);
      this.#inner.set(row, state);
      this.#outputs.expect(state);
    }
    this.#reader = new RowReader({
      inner: (nested) => {
        this.#framed = true;
        return this.#inner.get(nested.row) ?? null;
      },
      finished: (row, bytes) => {
        completeRow(row, bytes);
        if (row.plan.repetition >= 0) row.countRepetition(bytes);
        this.#outputs.hold(row);
      },
      refused: (row, error) => {
        if (this.#trying) throw error;
        const reject = rejectOf(row.plan.table, error);
        if (plan.ownRows) options.onReject(reject);
        else this.#refused.push(reject);
      },
      unknown: (fields, row, bytes, keyFrom, keyTo, at) =>
        this.#left.count(fields, row, bytes, keyFrom, keyTo, at),
    });
  }

  /** Rows so far, of each wanted table. */
  counts(): Record<string, number> {
    return this.#outputs.counts();
  }

  /** What the rows so far had, by table: values of columns, and fields that no column took. */
  met(): TableFields[] {
    const left = this.#left.all();
    return [this.#row, ...this.#inner.values()].flatMap(({ plan, filled }) => {
      // A frame has the name of the rows inside it, which count what they had and what is around them.
      if (!plan.ownRows || !this.#outputs.has(plan.table)) return [];
      return [
        {
          table: plan.table,
          rows: this.#outputs.count(plan.table),
          filled: new Map(plan.columns.map(({ name }, slot) => [name, filled[slot] ?? 0])),
          left: left.filter(({ table }) => table === plan.table),
        },
      ];
    });
  }

  /** How rows are made of a document. */
  get plan(): RowPlan {
    return this.#row.plan;
  }

  /** Counts rows that were shaped elsewhere by the same plan, and are in their target. */
  adopt({ table, count, filled }: ReadyRows): void {
    this.#outputs.add(table, count);
    const state = [this.#row, ...this.#inner.values()].find(({ plan }) => plan.table === table);
    filled.forEach((times, slot) => state?.countFilled(slot, times));
  }

  /** Begins to count anew. */
  forget(): void {
    this.#left.forget();
    this.#outputs.forget();
    for (const { filled } of [this.#row, ...this.#inner.values()]) filled.fill(0);
  }

  /** Says which event carries the documents that follow; what it says stands in their rows. */
  about(event: RowEnvelope): void {
    this.#event.set(event);
    this.#ids.from(() => JSON.stringify([event.event_id, event.event_type, event.user_id]));
    this.#row.about(this.#event);
    for (const inner of this.#inner.values()) inner.about(this.#event);
  }

  /** Says where in its text the next document stands, in bytes. */
  at(offset: number): void {
    this.#ids.at(offset);
  }

  /**
   * Adds the rows of one document: an object, with nothing around it. A document that is not JSON, or whose own row
   * cannot be, gives none; a row inside it falls alone.
   * @returns false when it is valid JSON of another shape: a frame without rows in it. Then nothing is rejected either
   */
  shape(bytes: Buffer): boolean {
    if (this.#unfold === undefined) return this.#shape(bytes);
    return unfold(bytes, this.#unfold)
      .map((document) => this.#shape(document))
      .includes(true);
  }

  #shape(bytes: Buffer): boolean {
    try {
      return this.#shapeOne(bytes);
    } finally {
      this.#ids.next();
    }
  }

  #shapeOne(bytes: Buffer): boolean {
    const { ownRows, table } = this.#row.plan;
    try {
      if (bytes[0] !== OPEN_BRACE) throw notAnObject(bytes);
      const end = this.#read(bytes, 0);
      if (end !== bytes.length) throw unexpected(bytes, end);
      this.#settle(bytes, bytes);
    } catch (error) {
      const reject = rejectOf(table, error);
      if (!ownRows && reject.code === 'wrong_type') return false;
      this.#options.onReject(reject);
      return true;
    }
    if (!this.#hasShape()) return false;
    this.#refused.forEach((reject) => this.#options.onReject(reject));
    this.#outputs.write(this.#row, bytes, this.#ids);
    return true;
  }

  /**
   * Adds the row of a document whose members are columns, when all is well with it: saves looking at it twice. Whatever is wrong,
   * nothing is added or rejected.
   * @param isUsual asked once it is read, with where the values stand by slot, as `RowState` has them
   * @returns false when it has to be looked at more closely
   */
  shapePlain(bytes: Buffer, isUsual: (bytes: Buffer, from: Int32Array, to: Int32Array) => boolean): boolean {
    const row = this.#row;
    return this.#tried(bytes, () => {
      row.reset();
      this.#outputs.clear();
      return this.#quick?.read(bytes, row) === true && isUsual(bytes, row.from, row.to) ? bytes : null;
    });
  }

  /**
   * Adds the rows of a document that is an item of an array, when all is well with it: saves whoever calls looking for its
   * end. Whatever is wrong, nothing is added or rejected.
   * @param bytes with zeros at their end, at which a document that is cut stops
   * @param at index of its opening brace
   * @returns index of the comma or bracket after it; 0 when it has to be looked at more closely, or is not all there
   */
  shapeItem(bytes: Buffer, at: number, longest: number): number {
    if (this.#unfold !== undefined) return 0;
    let next = 0;
    const isAdded = this.#tried(bytes, () => {
      const end = this.#read(bytes, at);
      next = skipWhite(bytes, end);
      const isWhole = (bytes[next] === COMMA || bytes[next] === CLOSE_BRACKET) && next - at <= longest;
      return isWhole ? bytes.subarray(at, end) : null;
    });
    return isAdded ? next : 0;
  }

  /**
   * Adds the rows of a document that is a member of an object, when all is well with both: saves looking for it first.
   * Whatever is wrong, nothing is added or rejected.
   * @param name in quotes
   * @returns false when it has to be looked at more closely
   */
  shapeMember(bytes: Buffer, name: Uint8Array): boolean {
    return this.#tried(bytes, () => this.#readMember(bytes, name));
  }

  /** @param read gives the document that it has read; null when it has to be looked at more closely */
  #tried(bytes: Buffer, read: () => Buffer | null): boolean {
    this.#trying = true;
    try {
      const document = read();
      if (document === null) return false;
      this.#settle(bytes, document);
      if (!this.#hasShape()) return false;
      this.#outputs.write(this.#row, bytes, this.#ids);
      return true;
    } catch (error) {
      // Throws what is no fault of the document.
      rejectOf(this.#row.plan.table, error);
      return false;
    } finally {
      this.#trying = false;
    }
  }

  #readMember(bytes: Buffer, name: Uint8Array): Buffer | null {
    let document: Buffer | null = null;
    let i = skipWhite(bytes, 0);
    if (bytes[i] !== OPEN_BRACE) return null;
    do {
      const keyFrom = skipWhite(bytes, i + 1);
      const keyTo = skipKey(bytes, keyFrom);
      if (keyTo < 0) return null;
      const at = skipColon(bytes, keyTo);
      if (isSame(bytes, keyFrom, keyTo, name)) {
        if (document !== null || bytes[at] !== OPEN_BRACE) return null;
        i = this.#read(bytes, at);
        document = bytes.subarray(at, i);
      } else {
        i = skipValue(bytes, at, 2);
      }
      i = skipWhite(bytes, i);
    } while (bytes[i] === COMMA);
    return bytes[i] === CLOSE_BRACE && skipWhite(bytes, i + 1) === bytes.length ? document : null;
  }

  /** False for a frame that has no place for rows, or none that could be one. */
  #hasShape(): boolean {
    if (this.#row.plan.ownRows || this.#outputs.holdsInner) return true;
    return this.#framed && this.#refused.length === 0;
  }

  /** Returns the index after the document. */
  #read(bytes: Buffer, at: number): number {
    const row = this.#row;
    this.#outputs.clear();
    for (const inner of this.#inner.values()) inner.begin();
    row.reset();
    this.#framed = false;
    this.#refused.length = 0;
    if (at === 0 && this.#quick?.read(bytes, row) === true) return bytes.length;
    return this.#reader.object(row.plan.fields, row, bytes, at, 1);
  }

  /** @param document the part of `bytes` that has been read */
  #settle(bytes: Buffer, document: Buffer): void {
    if (!isUtf8(document)) throw new InvalidRow('not_utf8', 'not UTF-8');
    completeRow(this.#row, bytes);
    this.#ids.begin(document);
  }
}

function isSame(bytes: Uint8Array, from: number, to: number, text: Uint8Array): boolean {
  if (to - from !== text.length) return false;
  for (let i = 0; i < text.length; i += 1) if (bytes[from + i] !== text[i]) return false;
  return true;
}
