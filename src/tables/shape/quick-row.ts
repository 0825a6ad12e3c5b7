import { CLOSE_BRACE, DEEPEST, LOWER_N } from '../../lib/json-text.ts';
import { QuickScan } from '../../lib/quick-scan.ts';
import type { RowPlan } from './row-plan.ts';
import { readColumn } from './column-types.ts';
import type { RowState } from './row-state.ts';

/**
 * Reads documents of which every member is a column, as archived records are: WebAssembly finds the members, and checks JSON inside
 * them. Anything unusual is left to `RowReader`.
 */
export class QuickRow {
  readonly #scan: QuickScan;
  readonly #spans: Int32Array;

  private constructor(scan: QuickScan, columns: number) {
    this.#scan = scan;
    this.#spans = new Int32Array(2 * columns);
  }

  /** @returns null for rows of other documents, and for an engine without WebAssembly SIMD */
  static of({ fields, slots, nested, key }: RowPlan): QuickRow | null {
    const members = [...fields.members()];
    const areColumns = members.every(({ slot, other }, at) => slot === at && other === null);
    if (!areColumns || nested.length > 0 || key >= 0 || slots < members.length) return null;
    const scan = QuickScan.of(
      members.map(({ name }) => name),
      DEEPEST,
    );
    return scan === null ? null : new QuickRow(scan, members.length);
  }

  /**
   * Notes in the row where the values of a document stand.
   * @returns false when `RowReader` has to read it
   */
  read(bytes: Buffer, row: RowState): boolean {
    const [scan, spans, { columns }] = [this.#scan, this.#spans, row.plan];
    row.beginRow();
    if (bytes.at(-1) !== CLOSE_BRACE || !scan.scan(bytes, spans) || scan.hadOthers) return false;
    const { isCanonical } = scan;
    for (let slot = 0; 2 * slot < spans.length; slot += 1) {
      const from = spans[2 * slot] as number;
      if (from < 0 || bytes[from] === LOWER_N) continue;
      const { type } = columns[slot] as RowPlan['columns'][number];
      const end = spans[2 * slot + 1] as number;
      const to = type === 'json' ? (isCanonical ? end : -end) : readColumn(type, bytes, from, 2);
      if (to === 0 || (to < 0 && type !== 'text' && type !== 'json')) return false;
      row.from[slot] = from;
      row.to[slot] = to;
    }
    return true;
  }
}
