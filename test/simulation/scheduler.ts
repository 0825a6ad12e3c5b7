import { AsyncLocalStorage } from 'node:async_hooks';
import { Random } from '../support/random.ts';

const realImmediate = globalThis.setImmediate;

/** One life of the receiver, from its start to its kill. What it asks for after that is never answered. */
export class Life {
  isAlive = true;
  readonly #atEnd: (() => void)[] = [];
  readonly #ended = Promise.withResolvers<void>();

  /** Resolves when it is over. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** What the system does for a process that is gone, such as dropping its locks. */
  atEnd(release: () => void): void {
    this.#atEnd.push(release);
  }

  end(): void {
    this.isAlive = false;
    for (const release of this.#atEnd.splice(0)) release();
    this.#ended.resolve();
  }
}

/** Thrown into code of a process that has ended. */
export class Gone extends Error {
  override name = 'Gone';
}

type Context = <T>(run: () => T) => T;

interface Task {
  readonly life: Life | null;
  readonly run: () => void;
}

interface Timer extends Task {
  readonly at: number;
  readonly order: number;
}

/**
 * Time, and the order of everything that is not decided by the program itself: one thing after the other, chosen by the
 * seed among all that could happen next. Time stands still while anything can.
 */
export class Scheduler {
  readonly random: Random;
  readonly #lives = new AsyncLocalStorage<Life | null>();
  /** Runs something within a life: made once for each, because a context is a copy of all that is kept in it. */
  readonly #contexts = new Map<Life | null, Context>();
  #ready: Task[] = [];
  #timers: Timer[] = [];
  #now = 0;
  #order = 0;
  /** What comes in the middle of everything else: after so many turns, whatever is going on then. */
  #fuses: { turns: number; readonly run: () => void }[] = [];
  /** Whether most of what the outside does takes seconds. */
  slow = false;
  /** Hash of all choices: two runs are the same run when it is the same. */
  trace = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /** Milliseconds since the beginning. */
  get now(): number {
    return this.#now;
  }

  get life(): Life | null {
    return this.#lives.getStore() ?? null;
  }

  within<T>(life: Life | null, run: () => T): T {
    return this.#contextOf(life)(run);
  }

  #contextOf(life: Life | null): Context {
    let context = this.#contexts.get(life);
    if (context === undefined) {
      context = this.#lives.run(life, () => AsyncLocalStorage.snapshot() as Context);
      this.#contexts.set(life, context);
    }
    return context;
  }

  /** The life that asks; throws when it is over. */
  asker(): Life | null {
    const { life } = this;
    if (life?.isAlive === false) throw new Gone();
    return life;
  }

  /** Something the outside does for who asks, at a time of its own choosing: now, or some milliseconds later. */
  later(run: () => void): void {
    const { life } = this;
    if (life?.isAlive === false) return;
    if (this.random.chance(this.slow ? 0.7 : 0.05))
      this.after(this.random.below(this.slow ? 4000 : 300), run);
    else this.#ready.push({ life, run: this.#of(life, run) });
  }

  /** What a call to the outside comes to. */
  ask<T>(work: () => T): Promise<T> {
    if (this.life?.isAlive === false) return new Promise(() => undefined);
    return new Promise((resolve, reject) =>
      this.later(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      }),
    );
  }

  after(ms: number, run: () => void): () => void {
    const { life } = this;
    this.#order += 1;
    const delay = Number.isFinite(ms) ? Math.max(0, Math.min(ms, 1e12)) : 1e12;
    const timer = { life, run: this.#of(life, run), at: this.#now + delay, order: this.#order };
    if (life?.isAlive !== false) this.#timers.push(timer);
    return () => {
      const at = this.#timers.indexOf(timer);
      if (at !== -1) this.#timers.splice(at, 1);
    };
  }

  /** Whatever it asks for in turn is asked by the same life. */
  #of(life: Life | null, run: () => void): () => void {
    const context = this.#contextOf(life);
    return () => context(run);
  }

  /** The machine is suspended: when it comes back, all its clocks have moved on, and nothing else has happened. */
  suspend(ms: number): void {
    this.#now += ms;
  }

  afterTurns(turns: number, run: () => void): void {
    this.#fuses.push({ turns, run });
  }

  end(life: Life): void {
    life.end();
    this.#contexts.delete(life);
    this.#ready = this.#ready.filter((task) => task.life !== life);
    this.#timers = this.#timers.filter((task) => task.life !== life);
  }

  /** Lets things happen until the condition holds. @throws Error when it does not in that many turns, or within `ms` */
  async until(what: string, condition: () => boolean, ms = 3_600_000, turns = 200_000): Promise<void> {
    const end = this.#now + ms;
    await drained();
    for (let turn = 0; !condition(); turn += 1) {
      if (turn > turns || this.#now > end || !(await this.turn()))
        throw new Error(`${what}: never came true (at ${this.#now} ms, after ${turn} turns)`);
    }
  }

  /** One thing happens, and all that follows from it in the program. False when there is nothing left. */
  async turn(): Promise<boolean> {
    if (this.#fuses.length > 0) await this.#burn();
    const task = this.#ready.length > 0 ? this.#takeReady() : this.#takeTimer();
    if (task === null) return false;
    this.trace = (Math.imul(this.trace, 31) + this.#now + this.#ready.length * 7) | 0;
    if (task.life?.isAlive !== false) task.run();
    await drained();
    return true;
  }

  async #burn(): Promise<void> {
    for (const fuse of this.#fuses) fuse.turns -= 1;
    const due = this.#fuses.filter(({ turns }) => turns <= 0);
    this.#fuses = this.#fuses.filter(({ turns }) => turns > 0);
    for (const { run } of due) run();
    if (due.length > 0) await drained();
  }

  #takeReady(): Task {
    const at = this.random.below(this.#ready.length);
    return this.#ready.splice(at, 1)[0] as Task;
  }

  #takeTimer(): Task | null {
    let next: Timer | undefined;
    for (const timer of this.#timers)
      if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order))
        next = timer;
    if (next === undefined) return null;
    this.#timers.splice(this.#timers.indexOf(next), 1);
    this.#now = Math.max(this.#now, next.at);
    return next;
  }
}

/** So many turns happen in one round of Node's event loop: each round asks the kernel for news, and there is none. */
const PULSES = 64;
let pulses = 0;
let waiting: (() => void) | null = null;

/** All microtasks and ticks have run, as they do between any two immediates. */
function drained(): Promise<void> {
  return new Promise((resolve) => {
    waiting = resolve;
    if (pulses > 0) return;
    for (; pulses < PULSES; pulses += 1) realImmediate(pulse);
  });
}

function pulse(): void {
  pulses -= 1;
  const resolve = waiting;
  waiting = null;
  resolve?.();
}
