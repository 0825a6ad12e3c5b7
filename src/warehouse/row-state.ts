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
  /** Its position among its siblings. */
  position = 0;

  constructor(plan: RowPlan) {
    this.plan = plan;
    this.from = new Int32Array(plan.slots);
    this.to = new Int32Array(plan.slots);
  }

  reset(): void {
    this.from.fill(-1);
    this.extra.reset();
  }
}
