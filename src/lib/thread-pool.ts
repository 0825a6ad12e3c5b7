import { constants, getPriority, setPriority } from 'node:os';
import { parentPort, type Transferable, Worker } from 'node:worker_threads';

/** What a thread of a pool answers a job with. */
type Answer<Result> =
  { readonly ok: true; readonly value: Result } | { readonly ok: false; readonly error: unknown };

/** The program of a thread, `<name>.ts` or as it was built. @param beside `import.meta.url` of a module of its folder */
export function threadProgram(name: string, beside: string): URL {
  return new URL(`${name}.${beside.endsWith('.ts') ? 'ts' : 'js'}`, beside);
}

/**
 * In a thread of a pool: answers its jobs.
 * @param handOver buffers of a result that are not the thread's any more
 */
export function answerJobs<Result>(
  perform: (work: never) => Result | Promise<Result>,
  handOver: (result: Result) => readonly Transferable[] = () => [],
): void {
  const port = parentPort;
  if (port === null) throw new Error('this program runs as a worker thread only');
  const answer = async (work: never): Promise<void> => {
    try {
      const value = await perform(work);
      port.postMessage({ ok: true, value } satisfies Answer<Result>, handOver(value));
    } catch (error) {
      port.postMessage({ ok: false, error } satisfies Answer<Result>);
    }
  };
  port.on('message', (work) => void answer(work as never));
}

/** How much later than the thread that receives others have their turn, where cores are short: they get a tenth of its time. */
const NICER = 10;

/** Has the thread that calls it give way to the one that receives, as far as that is possible. */
export function lowerPriority(): void {
  // Linux alone takes it for this thread and not for the process.
  if (process.platform !== 'linux') return;
  try {
    setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICER));
  } catch {
    // Not allowed, as by a unit's SystemCallFilter: then it is one thread among others.
  }
}

/** For short-lived objects, of each thread: what V8 takes otherwise is several times as much, and hardly faster. */
const YOUNG_MB = 16;

interface Job<Work> {
  readonly work: Work;
  readonly handOver: readonly Transferable[];
}

interface Waiting<Result> {
  readonly resolve: (value: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Threads of one program that take jobs, each whichever comes next, one at a time.
 *
 * Modes: idle → running, by `start` or with the first job. Either → ended, by `close` or when a thread dies: every job rejects, and the
 * other threads end.
 * Without `start` a thread is started when a job finds no other free.
 */
export class ThreadPool<Work, Result> {
  readonly #program: URL;
  readonly #data: unknown;
  readonly #size: number;
  readonly #threads: Worker[] = [];
  readonly #free: Worker[] = [];
  readonly #jobs: (Job<Work> & Waiting<Result>)[] = [];
  readonly #running = new Map<Worker, Waiting<Result>>();
  #ended: Error | null = null;

  /**
   * @param program calls `answerJobs`
   * @param data what each thread gets as `workerData`
   */
  constructor(program: URL, data: unknown, size: number) {
    this.#program = program;
    this.#data = data;
    this.#size = size;
  }

  /** No job is taken any more. */
  get hasEnded(): boolean {
    return this.#ended !== null;
  }

  /** Starts the threads before there are jobs: each takes a while to load its program. */
  start(): void {
    while (this.#threads.length < this.#size) this.#startOne();
  }

  /**
   * Rejects with what the job threw, or what ended the pool.
   * @param handOver buffers of the work that are the thread's from now on
   */
  run(work: Work, handOver: readonly Transferable[] = []): Promise<Result> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    if (this.#free.length === 0 && this.#threads.length < this.#size) this.#startOne();
    return new Promise((resolve, reject) => {
      this.#jobs.push({ work, handOver, resolve, reject });
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
      const waiting = this.#running.get(thread);
      this.#running.delete(thread);
      this.#free.push(thread);
      if (answer.ok) waiting?.resolve(answer.value);
      else waiting?.reject(answer.error);
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
    thread.postMessage(job.work, job.handOver);
  }

  #end(why: Error): void {
    if (this.#ended === null) for (const thread of this.#threads) void thread.terminate();
    this.#ended ??= why;
    for (const { reject } of [...this.#running.values(), ...this.#jobs.splice(0)]) reject(this.#ended);
    this.#running.clear();
  }
}
