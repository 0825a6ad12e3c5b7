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
  readonly status: StatusLine;
  readonly #total: number;
  readonly #name: (line: string) => void;
  #first: { readonly delivered: number; readonly bytes: number } | null = null;

  /** @param total bytes of all files */
  constructor(io: Io, total: number) {
    this.status = new StatusLine(io);
    this.#total = total;
    this.#name = this.status.atMost(SHOWN);
  }

  show(read: Tally, settled: Counts, sinks: readonly FeedStatus[] = []): void {
    const delivered = settled.selected;
    this.#first ??= { delivered, bytes: read.bytes };
    this.status.show(() => `${this.#summary(read, settled)}${this.#left(read.bytes)}${trouble(sinks)}`);
  }

  problem({ where, reason }: Problem): void {
    this.#name(`${where}: ${reason}`);
  }

  #summary({ read, bytes }: Tally, { selected }: Counts): string {
    const rate = (selected - (this.#first?.delivered ?? 0)) / this.status.seconds;
    return `read ${read} (${formatAmount(bytes)}), done ${selected}, ${Math.round(rate)}/s`;
  }

  #left(bytes: number): string {
    if (this.#total === 0 || bytes === 0) return '';
    const share = Math.min(1, bytes / this.#total);
    const rate = (bytes - (this.#first?.bytes ?? 0)) / this.status.seconds;
    const left = rate <= 0 ? '' : `, ${Math.ceil(Math.max(0, this.#total - bytes) / rate)} s left`;
    return `, ${Math.round(share * 100)} %${left}`;
  }
}

function trouble(sinks: readonly FeedStatus[]): string {
  return sinks
    .flatMap(({ sink, mode, lastError }) => (lastError === null ? [] : [`; ${sink} ${mode}: ${lastError}`]))
    .join('');
}
