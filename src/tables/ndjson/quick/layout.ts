import type { ColumnType } from '../../definition.ts';
import { type Given, givenOf } from '../../shape/plan.ts';
import type { Fields, RowPlan } from '../../shape/row-plan.ts';

/** Numbers of the column types in `quick.as`. Every value of another type is unusual. */
const TYPES: Partial<Record<ColumnType, number>> = {
  text: 1,
  integer: 2,
  decimal: 3,
  timestamp: 4,
  date: 5,
  boolean: 6,
};

type Texts = (readonly [head: Uint8Array, given: Uint8Array])[];

const SLOT_SIZE = 8;
const COUNTER_SIZE = 4;
const FIELD_SIZE = 48;
/** Offset in a field of the address of the one after it. */
const NEXT = 8;
/** More than the braces, the line feed and the position of a row. */
const PUNCTUATION = 32;

/** Addresses of the description of a table's row. */
export interface RowLayout {
  readonly plan: RowPlan;
  readonly at: number;
  /** A counter for each column of the plan. */
  readonly filled: number;
}

/** Offsets in a row's description that `QuickItems` reads and writes. */
export const OUT = 52;
export const OUT_LENGTH = 56;
export const OUT_SIZE = 60;
export const ROWS = 64;
const ROW_SIZE = 88;

/** Writes the tables of a document as `quick.as` reads them; the offsets are explained there. */
export class Layout {
  #bytes = Buffer.alloc(16 * 1024);
  readonly #from: number;
  readonly #given: Given;
  /** Address of the first free byte. */
  #end: number;
  readonly rows: RowLayout[] = [];

  /** @param from address of the first byte */
  constructor(from: number, given: Given) {
    this.#given = given;
    this.#from = from;
    this.#end = from;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end - this.#from);
  }

  /**
   * @param tables whose rows are wanted
   * @returns the address
   */
  row(plan: RowPlan, tables: readonly string[]): number {
    const { columns, tail, required, older, inherited } = plan;
    const at = this.#room(ROW_SIZE);
    const filled = this.#room(columns.length * COUNTER_SIZE);
    this.rows.push({ plan, at, filled });
    const [own, behind] = [columns, tail].map((some) =>
      some.map((column) => [column.head, givenOf(this.#given, column)] as const),
    ) as [Texts, Texts];
    const given = behind.filter(([, value]) => value.length > 0);
    const texts = [...[...own, ...behind].flat(), ...inherited.map(({ head }) => head)];
    const room = texts.reduce((sum, { length }) => sum + length, PUNCTUATION);
    const words = [
      this.#words(own.map((column) => column.flatMap((text) => this.#text(text)))),
      [columns.length, SLOT_SIZE * (1 + plan.slots), plan.position, plan.key],
      // Least lengths: a text needs one character between its quotes to be an identity.
      this.#words(required.map((slot) => [slot, columns[slot]?.type === 'text' ? 3 : 1])),
      required.length,
      this.#words(older.map(({ slot, from, path }) => [slot, from, path === null ? 0 : 1])),
      older.length,
      this.#fields(plan.fields, tables),
      this.#text(Buffer.concat(given.flat())),
      room,
      // OUT, OUT_LENGTH, OUT_SIZE and ROWS, which `QuickItems` sets.
      [0, 0, 0, 0, filled],
      this.#words(inherited.map(({ head, slot }) => [this.#text(head), slot, 0].flat())),
      [inherited.length, tables.includes(plan.table) ? 1 : 0],
    ];
    this.#write(words.flat(), at);
    return at;
  }

  #fields(fields: Fields, tables: readonly string[]): number {
    const members = [...fields.members()].map((field) => {
      const { key, slot, type, other, nested } = field;
      const start = Buffer.alloc(8);
      start.set(key.subarray(0, start.length));
      const mask = Buffer.alloc(8).fill(0xff, 0, Math.min(key.length, 8));
      return [
        this.#text(key),
        // The member after it: at first in the order of the table, then as the last item had them.
        0,
        // A value that two columns read is unusual, unless it is null. An object has its slot in the place of a type.
        slot < 0 ? [slot, field.object] : other === null ? [slot, TYPES[type] ?? 0] : [-1, slot],
        field.fields === null ? 0 : this.#fields(field.fields, tables),
        nested === null ? 0 : this.row(nested.row, tables),
        nested?.each === 'map' ? 1 : 0,
        [start, mask].flatMap((bytes) => [bytes.readInt32LE(0), bytes.readInt32LE(4)]),
      ].flat();
    });
    const first = this.#words(members);
    for (const [i] of members.entries())
      this.#write([first + ((i + 1) % members.length) * FIELD_SIZE], first + i * FIELD_SIZE + NEXT);
    return this.#words([[first, members.length, first]]);
  }

  /** @returns address and length */
  #text(text: Uint8Array): readonly [number, number] {
    const at = this.#room(text.length);
    this.#bytes.set(text, at - this.#from);
    return [at, text.length];
  }

  #words(rows: readonly (readonly number[])[]): number {
    const words = rows.flat();
    const at = this.#room(words.length * 4);
    this.#write(words, at);
    return at;
  }

  #write(words: readonly number[], at: number): void {
    words.forEach((word, i) => this.#bytes.writeInt32LE(word, at - this.#from + i * 4));
  }

  /** Reserves sixteen bytes more than asked for, because readers look so far ahead. @returns the address */
  #room(bytes: number): number {
    const at = this.#end;
    this.#end = (at + bytes + 23) & ~7;
    const missing = this.#end - this.#from - this.#bytes.length;
    if (missing > 0) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(this.#bytes.length + missing)]);
    return at;
  }
}
