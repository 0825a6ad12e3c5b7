import { fork, type ChildProcess } from 'node:child_process';
import type { Progress } from '../torture/ledger.ts';
import type { Order, Report } from './job.ts';

export interface RunOptions {
  /** Of the first history; the others count on from it. */
  readonly seed: number;
  /** These come first. */
  readonly first?: readonly number[];
  readonly histories: number;
  readonly minutes: number;
  readonly jobs: number;
  /** Steps of the operator; left out: as each seed has it. */
  readonly length?: number | undefined;
  /** The program has a known defect: the first seed that shows it is enough. */
  readonly isDefect: boolean;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Totals {
  histories: number;
  events: number;
  /** What was done to the receiver, and how often. */
  readonly tried: Record<string, number>;
  /** Seeds. */
  readonly failed: number[];
  /** Seeds whose process ended, instead of telling how their history did. */
  readonly died: number[];
  readonly seed: number;
  seconds: number;
}

/** A process is exchanged after so many histories: each leaves a little behind. */
const HISTORIES_A_PROCESS = 4000;
/** Milliseconds between two notes of how far it is. */
const EVERY = 60_000;

/** Histories in several processes; each gets the next seed when it has finished one. */
export class Run {
  readonly #options: RunOptions;
  readonly #totals: Totals;
  readonly #started = performance.now();
  #given = 0;
  /** Seeds. */
  readonly #underWay = new Set<number>();
  #isOver = false;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#totals = {
      histories: 0,
      events: 0,
      tried: {},
      failed: [],
      died: [],
      seed: options.seed,
      seconds: 0,
    };
  }

  async end(): Promise<Totals> {
    const { jobs, histories } = this.#options;
    const count = Math.max(1, Math.min(jobs, histories));
    const progress = setInterval(() => {
      process.stderr.write(`${lineOf(this.#counted())}\n`);
      this.#tell();
    }, EVERY);
    await Promise.all(Array.from({ length: count }, () => this.#job()));
    clearInterval(progress);
    this.#tell();
    return this.#counted();
  }

  #tell(): void {
    const { histories, events, tried, failed, seconds } = this.#counted();
    const next = Math.min(this.#options.seed + this.#given, ...this.#underWay);
    const counts = { histories, events, ...tried };
    this.#options.onProgress?.({ next, seconds, counts, failed: failed.map(String) });
  }

  #counted(): Totals {
    this.#totals.seconds = Math.round(performance.now() - this.#started) / 1000;
    return this.#totals;
  }

  async #job(): Promise<void> {
    while (!this.#isDone()) {
      const child = fork(new URL('job.ts', import.meta.url), {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      for (let done = 0; done < HISTORIES_A_PROCESS && !this.#isDone() && child.connected; done += 1)
        await this.#one(child);
      if (child.connected) child.disconnect();
    }
  }

  #isDone(): boolean {
    const { histories, minutes } = this.#options;
    const isLate = performance.now() - this.#started > minutes * 60_000;
    return this.#isOver || isLate || this.#given >= histories;
  }

  async #one(child: ChildProcess): Promise<void> {
    const { seed, first = [], length, isDefect } = this.#options;
    const next = first[this.#given] ?? seed + this.#given - first.length;
    const order: Order = { seed: next, length, shrinks: !isDefect };
    this.#given += 1;
    this.#underWay.add(order.seed);
    const { events, tried, faults, text } = await new Promise<Report>((resolve) => {
      const died = (code: number | null): void => {
        const fault = `seed ${order.seed}: its process ended with ${code}`;
        this.#totals.died.push(order.seed);
        resolve({ seed: order.seed, events: 0, tried: {}, faults: [fault], text: `${fault}\n` });
      };
      child.once('exit', died);
      child.once('message', (report: Report) => {
        child.off('exit', died);
        resolve(report);
      });
      child.send(order);
    });
    this.#underWay.delete(order.seed);
    const totals = this.#totals;
    totals.histories += 1;
    totals.events += events;
    for (const [what, times] of Object.entries(tried)) totals.tried[what] = (totals.tried[what] ?? 0) + times;
    if (faults.length === 0) return;
    totals.failed.push(order.seed);
    process.stdout.write(text);
    if (isDefect) this.#isOver = true;
  }
}

/** For a person. */
export function lineOf({ histories, events, tried, failed, seed, seconds }: Totals): string {
  const rate = (histories / seconds).toFixed(1);
  const kinds = Object.entries(tried).sort(([, one], [, other]) => other - one);
  return [
    `${histories} simulated histories (${rate} a second) with ${events} events, seeds from ${seed}`,
    `tried: ${kinds.map(([what, times]) => `${what} ${times}`).join(', ')}`,
    failed.length === 0 ? 'none failed' : `${failed.length} failed: seeds ${failed.join(', ')}`,
  ].join('; ');
}
