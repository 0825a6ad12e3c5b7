import { inColumns } from '../lib/columns.ts';
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
  const [heading = '', ...lines] = inColumns([header, ...rows]).split('\n');
  io.stdout.write([styled('bold', heading, hasColours(io.stdout, io.env)), ...lines, ''].join('\n'));
}
