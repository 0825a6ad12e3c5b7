import { canonicalString } from '../../lib/json-compact.ts';
import type { ExtraField, OnExtraField } from '../learned/field-sums.ts';
import { type Fields, pathOf } from './row-plan.ts';

/** Fields that are remembered of one object, so that documents of ever new keys cannot fill the memory. */
const MOST = 1000;

/** What a value is, by its first byte; a number otherwise. */
const KINDS: Readonly<Record<string, string>> = {
  '"': 'text',
  '{': 'object',
  '[': 'array',
  t: 'boolean',
  f: 'boolean',
  n: 'null',
};

/** Counts the fields that go to `extra`. */
export class ExtraFields {
  readonly #onFirst: OnExtraField | undefined;
  readonly #byObject = new Map<Fields, Map<string, ExtraField>>();

  /** @param onFirst called when a field is first seen */
  constructor(onFirst?: OnExtraField) {
    this.#onFirst = onFirst;
  }

  forget(): void {
    this.#byObject.clear();
  }

  all(): ExtraField[] {
    return [...this.#byObject.values()].flatMap((fields) => [...fields.values()]);
  }

  /**
   * @param keyTo negative when the key has escapes
   * @param at index of the value
   */
  count(object: Fields, table: string, bytes: Buffer, keyFrom: number, keyTo: number, at: number): void {
    let known = this.#byObject.get(object);
    if (known === undefined) this.#byObject.set(object, (known = new Map()));
    const key = bytes.toString('latin1', keyFrom, Math.abs(keyTo));
    let field = known.get(key);
    if (field === undefined) {
      if (known.size >= MOST) return;
      const name = JSON.parse(canonicalString(bytes, keyFrom, Math.abs(keyTo)).toString()) as string;
      field = { table, path: pathOf(object.path, name), type: object.typeOf(name), found: {} };
      known.set(key, field);
      this.#onFirst?.(table, field.path, field.type);
    }
    const kind = KINDS[String.fromCharCode(bytes[at] as number)] ?? 'number';
    field.found[kind] = (field.found[kind] ?? 0) + 1;
  }
}
