import type { Database } from '../../tables/database/database.ts';
import type { TableDefinition } from '../../tables/definition.ts';

const LINE_FEED = 10;

/**
 * Adds rows, except those that the database refuses.
 * @param onRefused gets the line of a refused row, as a part of `lines`
 * @returns number of refused rows
 */
export async function appendRows(
  database: Database,
  table: TableDefinition,
  lines: Buffer,
  load: number,
  onRefused: (row: Buffer, reason: string) => void,
): Promise<number> {
  const reason = await database.tryAppend(table, lines, load);
  if (reason === null) return 0;
  // Tries each half, until one row is left.
  const half = lines.lastIndexOf(LINE_FEED, lines.length / 2) + 1 || lines.indexOf(LINE_FEED) + 1;
  if (half < lines.length) {
    const refused = await appendRows(database, table, lines.subarray(0, half), load, onRefused);
    return refused + (await appendRows(database, table, lines.subarray(half), load, onRefused));
  }
  onRefused(lines, reason);
  return 1;
}
