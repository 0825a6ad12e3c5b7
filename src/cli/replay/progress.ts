import type { FeedStatus } from '../../deliver/feed-options.ts';
import { formatAmount } from '../../lib/amount.ts';
import type { Counts } from '../../replay/counts.ts';
import type { Problem, Tally } from '../../replay/unit.ts';
import type { Io } from '../io.ts';
import { StatusLine } from '../status-line.ts';

/** Problems that have a line of their own; the rest are counted. */
const SHOWN = 1000;

/** Progress of a replay, on stderr: how much is read and delivered, the rate, what is waited for. */
export class ReplayProgress {
  readonly #line: StatusLine;
  readonly #total: number;
  readonly #started = performance.now();
  #problems = 0;
  #first: { readonly delivered: number; readonly bytes: number } | null = null;

  /** @param total bytes of all files */
  constructor(io: Io, total: number) {
    this.#line = new StatusLine(io);
    this.#total = total;
  }

  show(read: Tally, settled: Counts, sinks: readonly FeedStatus[] = []): void {
    const delivered = settled.selected;
    this.#first ??= { delivered, bytes: read.bytes };
    this.#line.show(() => `${this.#summary(read, settled)}${this.#left(read.bytes)}${trouble(sinks)}`);
  }

  /** A line that stays. */
  note(line: string): void {
    this.#line.note(line);
  }

  problem({ where, reason }: Problem): void {
    this.#problems += 1;
    if (this.#problems <= SHOWN) this.note(`${where}: ${reason}`);
    if (this.#problems === SHOWN) this.note('further problems are only counted');
  }

  #summary({ read, bytes }: Tally, { selected }: Counts): string {
    const rate = (selected - (this.#first?.delivered ?? 0)) / this.#seconds();
    return `read ${read} (${formatAmount(bytes)}), done ${selected}, ${Math.round(rate)}/s`;
  }

  #left(bytes: number): string {
    if (this.#total === 0 || bytes === 0) return '';
    const share = Math.min(1, bytes / this.#total);
    const rate = (bytes - (this.#first?.bytes ?? 0)) / this.#seconds();
    const left = rate <= 0 ? '' : `, ${Math.ceil(Math.max(0, this.#total - bytes) / rate)} s left`;
    return `, ${Math.round(share * 100)} %${left}`;
  }

  #seconds(): number {
    return Math.max(performance.now() - this.#started, 1) / 1000;
  }
}

function trouble(sinks: readonly FeedStatus[]): string {
  return sinks
    .flatMap(({ sink, mode, lastError }) =>
      mode === 'running' || lastError === null ? [] : [`; ${sink} ${mode}: ${lastError}`],
    )
    .join('');
}
