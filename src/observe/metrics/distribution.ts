/** Counts of values by size: the hot half of a histogram, two additions an observation. */
export class Distribution {
  /** Upper bounds, ascending; what is above the last one counts in `count` and `sum` only. */
  readonly bounds: readonly number[];
  /** Values at most as large as the bound, and above the one before it. */
  readonly counts: Float64Array;
  count = 0;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length);
  }

  observe(value: number): void {
    this.count += 1;
    this.sum += value;
    const { bounds } = this;
    // Linear, because nearly everything falls into the first few.
    for (let at = 0; at < bounds.length; at += 1) {
      if (value <= (bounds[at] ?? 0)) {
        this.counts[at] = (this.counts[at] ?? 0) + 1;
        return;
      }
    }
  }
}

/** Seconds, from half a millisecond to ten seconds: what is answered while somebody waits. */
export const FAST_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Seconds, from a millisecond to a day: what waits for a sink that may be down. */
export const SLOW_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86_400,
];
