import { fork, type ChildProcess } from 'node:child_process';
import type { Counts, Failure, Order, Report } from './job.ts';
import type { Progress } from './ledger.ts';

export interface Options extends Pick<Order, 'kept' | 'only' | 'served'> {
  readonly seed: number;
  readonly states: number;
  readonly minutes: number;
  readonly jobs: number;
  readonly perPoint: number;
  readonly onProgress?: (progress: Progress) => void;
}

const NOTHING: Counts = { histories: 0, points: 0, states: 0, recoveries: 0, served: 0, failed: 0 };

/** Milliseconds between two notes for the ledger. */
const EVERY = 60_000;

/** A recovery does hundreds of small things with files, one after the other: no thread is asked for them. */
const INLINE = ['--import', new URL('inline/hooks.ts', import.meta.url).href];

/** One run of all its processes. */
export class Run {
  readonly #options: Options;
  readonly #jobs = new Map<ChildProcess, { counts: Counts; at: string }>();
  readonly #failures: Failure[] = [];
  readonly #started = performance.now();
  readonly #over = Promise.withResolvers<void>();
  #broken = false;
  #told = performance.now();

  constructor(options: Options, base: string) {
    this.#options = options;
    const { seed, jobs, perPoint, kept, only, served } = options;
    const count = kept === undefined ? jobs : 1;
    for (let job = 0; job < count; job += 1) {
      const child = fork(new URL('job.ts', import.meta.url), { detached: true, execArgv: INLINE });
      this.#jobs.set(child, { counts: NOTHING, at: '' });
      child.on('message', (report: Report) => this.#hear(child, report));
      child.on('exit', (code) => {
        // What it had started is of its group.
        killGroup(child.pid);
        this.#ended(child, code);
      });
      child.send({ seed: seed + job, stride: count, perPoint, base, kept, only, served } satisfies Order);
    }
    const timer = setTimeout(() => this.#over.resolve(), options.minutes * 60_000);
    void this.#over.promise.then(() => clearTimeout(timer));
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => this.#over.resolve());
  }

  /** @returns the exit code, and what was tried, for a person */
  async end(): Promise<{ readonly code: number; readonly line: string }> {
    await this.#over.promise;
    const children = [...this.#jobs.keys()].filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    const ends = children.map((child) => new Promise((resolve) => child.once('exit', resolve)));
    // What was being tried then has no result.
    for (const child of children) child.disconnect();
    await Promise.all(ends);
    for (const { seed, state, folder, whole } of this.#failures.filter((failure) => failure.state !== null))
      note(
        `failed: seed ${seed}, state ${state}: npm run torture -- --history ${folder} --only ${state}${whole ? ' --serve' : ''}`,
      );
    this.#tell(true);
    const failed = this.#failed();
    const found = failed.length === 0 ? '' : `: seeds ${failed.join(', ')}`;
    const line = `${this.#line()}${found}; seeds from ${this.#options.seed}`;
    return { code: this.#failures.length > 0 || this.#broken ? 1 : 0, line };
  }

  #hear(child: ChildProcess, report: Report): void {
    switch (report.kind) {
      case 'counts':
        this.#jobs.set(child, report);
        this.#tell();
        note(`${this.#line()} (history and state ${report.at})`);
        if (this.#sum('states') >= this.#options.states && this.#options.kept === undefined)
          this.#over.resolve();
        break;
      case 'failure': {
        const { seed, state, faults, lost } = report.failure;
        this.#failures.push(report.failure);
        note(`seed ${seed}, ${state === null ? 'no state' : `state ${state}`}:`);
        for (const fault of faults.slice(0, 5)) note(`  ${fault}`);
        if (state === null) break;
        note(`  when this is lost, and nothing else:`);
        for (const text of lost.slice(0, 20)) note(`    ${text}`);
        break;
      }
      case 'over':
        this.#over.resolve();
        break;
      default:
        report satisfies never;
    }
  }

  /** @param isLast whatever the time */
  #tell(isLast = false): void {
    if (!isLast && performance.now() - this.#told < EVERY) return;
    this.#told = performance.now();
    const names = Object.keys(NOTHING) as (keyof Counts)[];
    const counts = Object.fromEntries(names.map((name) => [name, this.#sum(name)]));
    // One that was begun is not begun again.
    const seeds = Array.from(this.#jobs.values(), ({ at }) => Number(at.split(' ')[0]));
    const next = 1 + Math.max(this.#options.seed - 1, ...seeds);
    const seconds = (performance.now() - this.#started) / 1000;
    this.#options.onProgress?.({ next, seconds, counts, failed: this.#failed() });
  }

  #failed(): string[] {
    return this.#failures.map(
      ({ seed, state }) => `${seed} (${state === null ? 'not recorded' : `state ${state}`})`,
    );
  }

  #ended(child: ChildProcess, code: number | null): void {
    if (code === 0) return;
    this.#broken = true;
    note(`a process ended with ${code} after state ${this.#jobs.get(child)?.at}`);
    this.#over.resolve();
  }

  #sum(name: keyof Counts): number {
    return [...this.#jobs.values()].reduce((sum, { counts }) => sum + counts[name], 0);
  }

  #line(): string {
    const seconds = (performance.now() - this.#started) / 1000;
    const rate = (this.#sum('states') / seconds).toFixed(1);
    return [
      `${this.#sum('histories')} recorded histories`,
      `${this.#sum('points')} crash points`,
      `${this.#sum('states')} states (${rate} a second)`,
      `${this.#sum('recoveries')} recoveries, ${this.#sum('served')} by serve`,
      `${this.#sum('failed')} failed`,
    ].join(', ');
  }
}

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch {
    // It had nobody left.
  }
}
