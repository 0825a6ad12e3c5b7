import { BACKSLASH } from '../../lib/json-text.ts';
import type { EnvelopeValues } from './envelope.ts';
import { ExtraWriter } from './extra.ts';
import { InvalidRow } from './reject.ts';
import { type Given, givenOf } from './plan.ts';
import type { RowPlan } from './row-plan.ts';
import { plainValue } from './column-types.ts';
import { instantOf } from './time.ts';

/** Stands for the index of a value that its column does not take. */
export const INVALID = -2;

/** The row that is being read: where in the document each column's value stands, and what goes to `extra`. */
export class RowState {
  readonly plan: RowPlan;
  /** First byte of a slot's value; -1 when it has none, `INVALID` when the column does not take it. */
  readonly from: Int32Array;
  /** The byte after it; negative as `readColumn` returns it. */
  readonly to: Int32Array;
  readonly extra = new ExtraWriter();
  /** Rows that were written, and in how many of them a slot had a value of the document. */
  rows = 0;
  readonly filled: Float64Array;
  /** What a slot, and then each column after `extra`, has when the document says nothing; empty for null. */
  readonly given: Uint8Array[];
  /** The end of each; negative when it has escapes. */
  readonly givenTo: Int32Array;
  /** Position among the rows of the document. */
  position = 0;
  /** Rows before it in the document with the same key. */
  repetition = 0;
  /** Of the plan's, those for which nothing is given. */
  readonly #enveloped: readonly number[];
  readonly #seen = new Map<number, number>();

  constructor(plan: RowPlan, given: Given) {
    this.plan = plan;
    this.from = new Int32Array(plan.slots);
    this.to = new Int32Array(plan.slots);
    this.filled = new Float64Array(plan.slots);
    this.given = [...plan.columns, ...plan.tail].map((column) => givenOf(given, column));
    this.givenTo = Int32Array.from(this.given, endOf);
    this.#enveloped = plan.enveloped.filter((slot) => this.givenTo[slot] === 0);
  }

  /** Takes what an event says of the documents that follow. */
  about(event: EnvelopeValues): void {
    const { plan, given, givenTo } = this;
    const { columns, tail } = plan;
    for (const slot of this.#enveloped) {
      const { envelope } = (columns[slot] ?? tail[slot - columns.length]) as RowPlan['columns'][number];
      const before = given[slot] as Uint8Array;
      const value = envelope === null ? before : event.of(envelope);
      if (value === before) continue;
      given[slot] = value;
      givenTo[slot] = endOf(value);
    }
  }

  beginDocument(): void {
    this.position = 0;
    if (this.plan.repetition >= 0) this.#seen.clear();
  }

  beginRow(): void {
    this.from.fill(-1);
    this.extra.reset();
  }

  /**
   * Takes values from where older documents have them, and checks that required columns have one.
   * @throws InvalidRow
   */
  complete(bytes: Buffer): void {
    const { from, to, plan } = this;
    for (const { slot, from: other, path } of plan.older) {
      const start = from[other] as number;
      if (start < 0) continue;
      if ((from[slot] as number) < 0) {
        from[slot] = start;
        to[slot] = to[other] as number;
      } else if (path !== null) {
        this.extra.named(path, bytes, start, Math.abs(to[other] as number));
      }
    }
    for (const slot of plan.required)
      if (!this.hasValue(slot)) throw new InvalidRow('no_identity', `${plan.columns[slot]?.name} is missing`);
    if (plan.repetition >= 0) this.#countRepetition(bytes);
  }

  /** False also for a text without characters, which identifies nothing. @param at index of a column, or after `extra` */
  hasValue(at: number): boolean {
    const column = this.plan.columns[at];
    const start = column === undefined ? -1 : (this.from[at] as number);
    if (start < 0) return (this.given[at] as Uint8Array).length >= LEAST_TEXT;
    return column?.type !== 'text' || Math.abs(this.to[at] as number) - start >= LEAST_TEXT;
  }

  #countRepetition(bytes: Uint8Array): void {
    const key = this.#hashOfKey(bytes);
    this.repetition = this.#seen.get(key) ?? 0;
    this.#seen.set(key, this.repetition + 1);
  }

  /** 53 bits, so that two keys of one document practically never have the same. */
  #hashOfKey(bytes: Uint8Array): number {
    let one = 0;
    let two = 1;
    for (const slot of this.plan.keySlots) {
      one = (Math.imul(one, 31) + slot) | 0;
      let from = this.from[slot] as number;
      if (from < 0) continue;
      let to = this.to[slot] as number;
      let value = bytes;
      if (to < 0) {
        value = plainValue(this.plan.columns[slot]?.type ?? 'text', bytes, from, -to);
        [from, to] = [0, value.length];
      }
      // The same time has several texts.
      if (this.plan.columns[slot]?.type === 'timestamp') {
        const { seconds, micros } = instantOf(value, from + 1, to - 1);
        one = (Math.imul(one, 31) + Math.imul(seconds, 0x9e_37_79_b1) + micros) | 0;
        two = (Math.imul(Math.imul(two, 16_777_619) ^ seconds, 16_777_619) ^ micros) | 0;
        continue;
      }
      for (let i = from; i < to; i += 1) {
        const byte = value[i] as number;
        one = (Math.imul(one, 31) + byte) | 0;
        two = (Math.imul(two, 16_777_619) ^ byte) | 0;
      }
    }
    return (one >>> 0) * 0x20_0000 + (two >>> 11);
  }
}

/** Length of the shortest text in quotes that has a character. */
const LEAST_TEXT = 3;

/** The end of a text in quotes, negative when it has escapes. */
function endOf(text: Uint8Array): number {
  return text.includes(BACKSLASH) ? -text.length : text.length;
}
