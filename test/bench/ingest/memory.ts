import { median, round } from '../report.ts';

const EVERY_MS = 200;

/** Medians of the first and the last third of all samples, and the slope through all. */
export interface MemoryFigures {
  readonly firstMiB: number;
  readonly lastMiB: number;
  readonly maxMiB: number;
  readonly slopeMiBPerMinute: number;
}

/** Resident memory of a process while it is under load. */
export class MemoryWatch {
  readonly #read: () => number;
  readonly #samples: { readonly at: number; readonly mib: number }[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(read: () => number) {
    this.#read = read;
  }

  start(): void {
    this.#sample();
    this.#timer = setInterval(() => this.#sample(), EVERY_MS);
  }

  /** Between two stretches of load; samples of all stretches make one series. */
  pause(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  figures(): MemoryFigures {
    // What takes less than a second has fewer than three.
    const third = Math.max(1, Math.floor(this.#samples.length / 3));
    const all = this.#samples.map(({ mib }) => mib);
    return {
      firstMiB: round(median(all.slice(0, third)), 1),
      lastMiB: round(median(all.slice(-third)), 1),
      maxMiB: round(Math.max(...all), 1),
      slopeMiBPerMinute: round(this.#slope() * 60_000, 1),
    };
  }

  #sample(): void {
    this.#samples.push({ at: performance.now(), mib: this.#read() });
  }

  /** Least squares, MiB a millisecond. */
  #slope(): number {
    const meanAt = mean(this.#samples.map(({ at }) => at));
    const meanMib = mean(this.#samples.map(({ mib }) => mib));
    let products = 0;
    let squares = 0;
    for (const { at, mib } of this.#samples) {
      products += (at - meanAt) * (mib - meanMib);
      squares += (at - meanAt) ** 2;
    }
    return products / squares;
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
