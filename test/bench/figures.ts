import { inColumns } from '../../src/lib/columns.ts';

/** One thing that was measured: a value a round, whose median is meant to be so much. */
export interface Figure {
  readonly name: string;
  readonly values: readonly number[];
  /** Behind a number, such as ` ms`. */
  readonly unit?: string;
  /** Digits behind the point; 2 when left out. */
  readonly digits?: number;
  /** Judges the median; left out where there is no target. */
  readonly wanted?: `${keyof typeof COMPARE} ${number}` | undefined;
}

const COMPARE = {
  '≥': (value: number, limit: number) => value >= limit,
  '≤': (value: number, limit: number) => value <= limit,
  '<': (value: number, limit: number) => value < limit,
  '=': (value: number, limit: number) => value === limit,
};

/** True where there is no target. */
export function isMet({ values, wanted }: Figure): boolean {
  if (wanted === undefined) return true;
  const [compare, limit] = wanted.split(' ') as [keyof typeof COMPARE, string];
  return COMPARE[compare](median(values), Number(limit));
}

/** The table for a person. */
export function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const { name, wanted, unit = '' } = figure;
    const target = wanted === undefined ? [] : [`wanted ${wanted}${unit}`, isMet(figure) ? 'met' : 'MISSED'];
    return [name, shown(figure), ...target];
  });
  return `\n${inColumns(rows)}`;
}

/** For the JSON line, by the figures' names. */
export function jsonOf(figures: readonly Figure[]): object {
  return Object.fromEntries(
    figures.map((figure) => {
      const { name, values, wanted, digits = 2 } = figure;
      const target = wanted === undefined ? {} : { wanted, met: isMet(figure) };
      const rounded = values.map((value) => round(value, digits));
      return [name, { median: round(median(values), digits), values: rounded, ...target }];
    }),
  );
}

/** Such as `1.42 (1.38 to 1.5)`: the median, from the smallest to the largest. */
export function shown({ values, unit = '', digits = 2 }: Omit<Figure, 'name'>): string {
  const middle = `${round(median(values), digits)}${unit}`;
  if (values.length < 2) return middle;
  return `${middle} (${round(Math.min(...values), digits)} to ${round(Math.max(...values), digits)})`;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export const round = (value: number, digits = 0): number => Number(value.toFixed(digits));

/** Medians of the three thirds of samples, in the order in which they were taken. */
export function thirdsOf(samples: readonly number[]): readonly [first: number, second: number, last: number] {
  const third = Math.max(1, Math.floor(samples.length / 3));
  return [
    median(samples.slice(0, third)),
    median(samples.slice(third, -third)),
    median(samples.slice(-third)),
  ];
}
