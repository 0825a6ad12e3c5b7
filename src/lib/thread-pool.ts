import { constants, getPriority, setPriority } from 'node:os';
import { parentPort, type Transferable, Worker } from 'node:worker_threads';

/** Message of a thread of a pool when its job has ended. */
type Answer<Result> =
  { readonly ok: true; readonly value: Result } | { readonly ok: false; readonly error: unknown };

/** The program of a thread, `<name>.ts` or `.js`. @param beside `import.meta.url` of a module in its folder */
export function threadProgram(name: string, beside: string): URL {
  return new URL(`${name}.${beside.endsWith('.ts') ? 'ts' : 'js'}`, beside);
}

/** In a thread of a pool: performs its jobs. @param transferOf buffers of a result that are transferred */
export function answerJobs<Result>(
  perform: (work: never) => Result | Promise<Result>,
  transferOf: (result: Result) => readonly Transferable[] = () => [],
): void {
  const port = parentPort;
  if (port === null) throw new Error('this program runs as a worker thread only');
  const answer = async (work: never): Promise<void> => {
    try {
      const value = await perform(work);
      port.postMessage({ ok: true, value } satisfies Answer<Result>, transferOf(value));
    } catch (error) {
      port.postMessage({ ok: false, error } satisfies Answer<Result>);
    }
  };
  port.on('message', (work) => void answer(work as never));
}

/** Added to the nice value: on a busy machine such a thread gets a tenth of the time of the receiving one. */
const NICER = 10;

/** Lowers the priority of this thread, where that is possible. */
export function lowerPriority(): void {
  // Only on Linux this is for the thread; elsewhere it is for the process.
  if (process.platform !== 'linux') return;
  try {
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICER));
  } catch {
    // Not allowed, for example by SystemCallFilter of a systemd unit.
  }
}

/** For short-lived objects of each thread: V8's default is several times as much, and hardly faster. */
const YOUNG_MB = 16;

interface Job<Work, Result> {
  readonly work: Work;
  readonly transfer: readonly Transferable[];
  readonly resolve: (value: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Threads of one program. Each performs one job at a time, in the order of the jobs. A thread starts with `start`, or when a job finds
 * no free one.
 *
 * Modes: open → ended, by `close` or when a thread dies: every job rejects, and all threads end.
 */
export class ThreadPool<Work, Result> {
  readonly #program: URL;
  readonly #data: unknown;
  readonly #size: number;
  readonly #threads: Worker[] = [];
  readonly #free: Worker[] = [];
  readonly #jobs: Job<Work, Result>[] = [];
  readonly #running = new Map<Worker, Job<Work, Result>>();
  #ended: Error | null = null;

  /**
   * @param program calls `answerJobs`
   * @param data `workerData` of each thread
   */
  constructor(program: URL, data: unknown, size: number) {
    this.#program = program;
    this.#data = data;
    this.#size = size;
  }

  /** True when every job rejects. */
  get hasEnded(): boolean {
    return this.#ended !== null;
  }

  /** Starts all threads before there are jobs: each needs time to load its program. */
  start(): void {
    while (this.#threads.length < this.#size) this.#startOne();
  }

  /** Rejects with the error of the job, or of the pool. @param transfer buffers of the work */
  run(work: Work, transfer: readonly Transferable[] = []): Promise<Result> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    if (this.#free.length === 0 && this.#threads.length < this.#size) this.#startOne();
    return new Promise((resolve, reject) => {
      this.#jobs.push({ work, transfer, resolve, reject });
      this.#next();
    });
  }

  async close(): Promise<void> {
    this.#end(new Error('the threads were ended'));
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  #startOne(): void {
    const thread = new Worker(this.#program, {
      workerData: this.#data,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    this.#threads.push(thread);
    this.#free.push(thread);
    thread.on('message', (answer: Answer<Result>) => {
      const job = this.#running.get(thread);
      this.#running.delete(thread);
      this.#free.push(thread);
      if (answer.ok) job?.resolve(answer.value);
      else job?.reject(answer.error);
      this.#next();
    });
    thread.on('error', (error) => this.#end(error));
    thread.on('exit', (code) => this.#end(new Error(`a thread ended with code ${code}`)));
  }

  #next(): void {
    const thread = this.#free.at(-1);
    const job = thread === undefined ? undefined : this.#jobs.shift();
    if (thread === undefined || job === undefined) return;
    this.#free.pop();
    this.#running.set(thread, job);
    thread.postMessage(job.work, job.transfer);
  }

  #end(why: Error): void {
    if (this.#ended === null) for (const thread of this.#threads) void thread.terminate();
    this.#ended ??= why;
    for (const { reject } of [...this.#running.values(), ...this.#jobs.splice(0)]) reject(this.#ended);
    this.#running.clear();
  }
}
