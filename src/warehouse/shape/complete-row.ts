import { InvalidRow } from './reject.ts';
import type { RowState } from './row-state.ts';

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
