import { ByteWriter } from '../lib/byte-writer.ts';
import type { EnvelopeValues } from './envelope.ts';
import { ExtraWriter } from './extra.ts';
import type { RowPlan } from './plan.ts';

/** The row that is being gathered: where in the document each column's value stands, and what no column took. */
export class RowState {
  readonly plan: RowPlan;
  /** First byte of a slot's value; -1 when it has none. */
  readonly from: Int32Array;
  /** The byte after it; negative when it is a text with escapes. */
  readonly to: Int32Array;
  readonly extra = new ExtraWriter();
  /** Rows written so far in which a slot had a value of the document. */
  readonly filled: Float64Array;
  /** What a slot has when the document says nothing; empty for null. */
  readonly given: Uint8Array[];
  /** The columns after `extra`, as they are written behind every row. */
  readonly tail = new ByteWriter(512);
  /** Bytes of a row beside its values from the document. */
  room = 0;
  /** Its position among its siblings. */
  position = 0;
  /** Rows before it in the document with the same key. */
  repetition = 0;
  readonly #seen = new Map<number, number>();

  constructor(plan: RowPlan) {
    this.plan = plan;
    this.from = new Int32Array(plan.slots);
    this.to = new Int32Array(plan.slots);
    this.filled = new Float64Array(plan.slots);
    this.given = plan.columns.map(({ given }) => given);
    this.about(null);
  }

  /** Takes what an event says of the documents that follow; null for documents that no event carries. */
  about(event: EnvelopeValues | null): void {
    const { plan, given, tail } = this;
    let room = plan.room;
    for (let slot = 0; slot < given.length; slot += 1) {
      const { envelope, given: fixed } = plan.columns[slot] as RowPlan['columns'][number];
      if (envelope !== null && event !== null && fixed.length === 0) given[slot] = event.of(envelope);
      room += (given[slot] as Uint8Array).length;
    }
    tail.length = 0;
    for (const { head, given: fixed, envelope } of plan.tail) {
      const value = fixed.length > 0 || envelope === null || event === null ? fixed : event.of(envelope);
      if (value.length === 0) continue;
      tail.append(head);
      tail.append(value);
    }
    this.room = room + tail.length;
  }

  /** Begins a document. */
  begin(): void {
    this.position = 0;
    if (this.plan.repetition >= 0) this.#seen.clear();
  }

  /** Counts the rows of the document that have the key of this one. */
  countRepetition(bytes: Uint8Array): void {
    const key = this.#hashOfKey(bytes);
    this.repetition = this.#seen.get(key) ?? 0;
    this.#seen.set(key, this.repetition + 1);
  }

  /** 53 bits: that two keys of one document meet is not to be expected. */
  #hashOfKey(bytes: Uint8Array): number {
    let one = 0;
    let two = 1;
    for (const slot of this.plan.keySlots) {
      const from = this.from[slot] as number;
      const to = from < 0 ? from : Math.abs(this.to[slot] as number);
      one = (Math.imul(one, 31) + slot) | 0;
      for (let i = from; i < to; i += 1) {
        const byte = bytes[i] as number;
        one = (Math.imul(one, 31) + byte) | 0;
        two = (Math.imul(two, 16_777_619) ^ byte) | 0;
      }
    }
    return (one >>> 0) * 0x20_0000 + (two >>> 11);
  }

  reset(): void {
    this.from.fill(-1);
    this.extra.reset();
  }
}
