import { visible } from '../lib/visible.ts';
import { hasColours, styled } from './colour.ts';
import { note, print, type Io } from './io.ts';
import type { CommonFlags } from './config-options.ts';

export function printList<T>(
  io: Io,
  { json }: CommonFlags,
  found: readonly T[],
  header: readonly string[],
  row: (one: T) => readonly string[],
): void {
  if (json === true) for (const one of found) print(io, JSON.stringify(one));
  else if (found.length === 0) note(io, 'none');
  else printTable(io, header, found.map(row));
}

/** A table on stdout; on a terminal its heading stands out. */
export function printTable(io: Io, header: readonly string[], rows: readonly (readonly string[])[]): void {
  const [heading = '', ...lines] = renderTable(header, rows).split('\n');
  io.stdout.write([styled('bold', heading, hasColours(io.stdout, io.env)), ...lines, ''].join('\n'));
}

/** Lines of left-aligned columns, two spaces apart. Control characters are shown, never sent to the terminal. */
export function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header, ...rows].map((row) => row.map(visible));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
