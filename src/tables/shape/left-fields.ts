import { canonicalString } from '../../lib/json-compact.ts';
import { countLeft, type OnLeft } from '../learned/drift.ts';
import type { LeftField } from '../learned/field-sums.ts';
import { type Fields, pathOf } from './plan.ts';
import type { RowState } from './row-state.ts';

/** Paths that are remembered for an object: documents of ever new keys must not fill the memory. */
const MOST = 1000;

/** The members that no column took, each counted, and told of when it is first seen. */
export class LeftFields {
  readonly #onFirst: OnLeft | undefined;
  readonly #byObject = new Map<Fields, Map<string, LeftField>>();

  constructor(onFirst?: OnLeft) {
    this.#onFirst = onFirst;
  }

  forget(): void {
    this.#byObject.clear();
  }

  all(): LeftField[] {
    return [...this.#byObject.values()].flatMap((fields) => [...fields.values()]);
  }

  /**
   * @param keyTo negative when the key has escapes
   * @param at index of the value
   */
  count(
    fields: Fields,
    { plan: { table } }: RowState,
    bytes: Buffer,
    keyFrom: number,
    keyTo: number,
    at: number,
  ): void {
    const known = this.#byObject.get(fields) ?? new Map<string, LeftField>();
    if (known.size === 0) this.#byObject.set(fields, known);
    const key = bytes.toString('latin1', keyFrom, Math.abs(keyTo));
    const before = known.get(key);
    if (before !== undefined) {
      countLeft(before, bytes[at]);
      return;
    }
    if (known.size >= MOST) return;
    const name = JSON.parse(canonicalString(bytes, keyFrom, Math.abs(keyTo)).toString()) as string;
    const field = { table, path: pathOf(fields.path, name), type: fields.typeOf(name), found: {} };
    known.set(key, field);
    countLeft(field, bytes[at]);
    this.#onFirst?.(table, field.path, field.type);
  }
}
