import type { Database, RowBatch } from '../../tables/database/database.ts';

/**
 * Adds rows, except those that the database refuses.
 * @param onRefused gets the index of a refused row
 * @returns number of refused rows
 */
export async function appendRows(
  database: Database,
  batch: RowBatch,
  load: number,
  onRefused: (row: number, reason: string) => void,
  from = 0,
  to = batch.rows,
): Promise<number> {
  const reason = await database.tryAppend(batch, load, from, to);
  if (reason === null) return 0;
  // Tries each half, until one row is left.
  const half = Math.floor((from + to) / 2);
  if (half > from) {
    const refused = await appendRows(database, batch, load, onRefused, from, half);
    return refused + (await appendRows(database, batch, load, onRefused, half, to));
  }
  onRefused(from, reason);
  return 1;
}
