import { visible } from './visible.ts';

/** Lines of left-aligned columns, two spaces apart, with control characters made visible. */
export function inColumns(rows: readonly (readonly string[])[], indent = ''): string {
  const cells = rows.map((row) => row.map(visible));
  const widths: number[] = [];
  for (const row of cells)
    row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, cell.length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return cells.map((row) => indent + line(row).trimEnd()).join('\n');
}
