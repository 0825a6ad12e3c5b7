import { canonicalString } from '../../lib/json-compact.ts';
import { BACKSLASH } from '../../lib/json-text.ts';
import type { EnvelopeValues } from './envelope.ts';
import { ExtraWriter } from './extra.ts';
import { instantOf } from './time.ts';
import type { RowPlan } from './plan.ts';
import { InvalidRow } from './reject.ts';

/** The row that is being gathered: where in the document each column's value stands, and what no column took. */
export class RowState {
  readonly plan: RowPlan;
  /** First byte of a slot's value; -1 when it has none, `INVALID` when it does not fit. */
  readonly from: Int32Array;
  /** The byte after it; negative when it is a text with escapes. */
  readonly to: Int32Array;
  readonly extra = new ExtraWriter();
  /** Rows written so far in which a slot had a value of the document. */
  readonly filled: Float64Array;
  /** What a slot has when the document says nothing, and then each column after `extra`; empty for null. */
  readonly given: Uint8Array[];
  /** The end of each; negative when it has escapes. */
  readonly givenTo: Int32Array;
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
    this.given = [...plan.columns, ...plan.tail].map(({ given }) => given);
    this.givenTo = Int32Array.from(this.given, endOf);
  }

  /** Takes what an event says of the documents that follow. */
  about(event: EnvelopeValues): void {
    const { plan, given, givenTo } = this;
    for (const slot of plan.enveloped) {
      const { envelope } = (plan.columns[slot] ??
        plan.tail[slot - plan.columns.length]) as RowPlan['columns'][number];
      const before = given[slot] as Uint8Array;
      const value = envelope === null ? before : event.of(envelope);
      if (value === before) continue;
      given[slot] = value;
      givenTo[slot] = endOf(value);
    }
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
      one = (Math.imul(one, 31) + slot) | 0;
      let from = this.from[slot] as number;
      if (from < 0) continue;
      let to = this.to[slot] as number;
      let value = bytes;
      if (to < 0) {
        value = canonicalString(bytes, from, -to);
        [from, to] = [0, value.length];
      }
      // Times that are written in another way are the same key.
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

  countFilled(slot: number, times: number): void {
    this.filled[slot] = (this.filled[slot] as number) + times;
  }

  reset(): void {
    this.from.fill(-1);
    this.extra.reset();
  }
}

/** The end of a text in quotes, negative when it has escapes. */
function endOf(text: Uint8Array): number {
  for (let i = 0; i < text.length; i += 1) if (text[i] === BACKSLASH) return -text.length;
  return text.length;
}

/**
 * Settles where older documents have something else, and sees that the row has its identity.
 * @throws InvalidRow
 */
export function completeRow(row: RowState, bytes: Buffer): void {
  const { from, to, plan } = row;
  for (const { slot, from: other, path } of plan.older) {
    const start = from[other] as number;
    if (start < 0) continue;
    if ((from[slot] as number) < 0) {
      from[slot] = start;
      to[slot] = to[other] as number;
    } else if (path !== null) {
      row.extra.named(path, bytes, start, Math.abs(to[other] as number));
    }
  }
  for (const slot of plan.required) {
    const start = from[slot] as number;
    // A text of nothing is no identity either.
    if (start >= 0 && Math.abs(to[slot] as number) - start > 2) continue;
    if (start >= 0 && plan.columns[slot]?.type !== 'text') continue;
    if (start < 0 && (row.given[slot] as Uint8Array).length > 2) continue;
    throw new InvalidRow('no_identity', `${plan.columns[slot]?.name ?? ''} is missing`);
  }
}
