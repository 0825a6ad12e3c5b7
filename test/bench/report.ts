import type { BenchResult } from './bench.ts';

/** The table for a person: figures, then targets. */
export function renderResult({ rows, targets }: BenchResult): string {
  const verdicts = targets.map(({ name, wanted, measured, met }) => {
    return [name, `${measured} (wanted ${wanted})`, met ? 'met' : 'MISSED'];
  });
  return `\n${columns(rows)}\n\n${columns(verdicts)}`;
}

function columns(rows: readonly (readonly string[])[]): string {
  const widths = [0, 1].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export const round = (value: number, digits = 0): number => Number(value.toFixed(digits));

/** From the smallest to the largest. */
export function rangeOf(values: readonly number[], digits = 2): string {
  return `${round(Math.min(...values), digits)} to ${round(Math.max(...values), digits)}`;
}
