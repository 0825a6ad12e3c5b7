import type { Event } from '../../src/core/event.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { Journal } from '../../src/core/journal.ts';
import { DELIVERED, type Sink } from '../../src/core/sink.ts';
import type { Delivery, DeliveryPlan } from '../../src/deliver/delivery.ts';
import { dropSink } from '../../src/deliver/waiting.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { Cell } from '../../src/lib/live.ts';
import { delivering, planned } from '../deliver/running.ts';
import { LIMITS } from '../deliver/support.ts';
import { inlineJournal } from '../support/inline-journal.ts';
import type { Settings } from './settings.ts';
import type { World } from './world.ts';

/** Milliseconds. The journal looks every five seconds what is past it. */
export const RETENTION = 2000;

/** Defects to be reintroduced, so that a test sees the model find them. */
export interface Defects {
  /** What waits goes by the routes of now. */
  readonly routesOfNow?: boolean;
  /** Nobody looks at sinks that a config leaves behind. */
  readonly forgetsSinks?: boolean;
}

/** What a run of the receiver is made of, from the journal's file to the sinks, in this process and without threads. */
export class Process {
  readonly #world: World;
  readonly #journal: SqliteJournal;
  readonly #delivery: Delivery;
  readonly #plan: Cell<DeliveryPlan>;
  readonly #alive: { now: boolean };
  readonly #kill: () => void;
  /** One for each process: what waits for one that all share would be kept for ever. */
  readonly #never = new AbortController().signal;

  private constructor(world: World, settings: Settings, defects: Defects) {
    this.#world = world;
    this.#alive = { now: true };
    const { journal, kill } = openJournal(world);
    this.#journal = journal;
    this.#kill = kill;
    const { delivery, plan } = delivering(journal, world.clock, planOf(world, this.#alive, settings), {
      sendTimeout: 1e6,
      maxPending: 4,
      ...(defects.routesOfNow === true
        ? { targetsOf: (event) => delivery.routes.targetsOf({ ...event, seq: Number.MAX_SAFE_INTEGER }) }
        : {}),
      seen: defects.forgetsSinks === true ? forgetful(journal) : journal,
    });
    this.#delivery = delivery;
    this.#plan = plan;
  }

  /** @throws MillraceError sink_waited_for */
  static async start(world: World, settings: Settings, defects: Defects): Promise<Process> {
    const process = new Process(world, settings, defects);
    await process.#delivery.start().catch((error: unknown) => {
      process.kill();
      throw error;
    });
    return process;
  }

  /** What `millrace sink drop` does while nothing runs. */
  static async drop(world: World, sink: string): Promise<void> {
    const { journal } = openJournal(world);
    await dropSink(journal, sink, () => false, world.clock.now());
    await journal.close();
  }

  /** Resolves when it is durable. */
  async accept(event: Event): Promise<void> {
    const { status } = await this.#journal.accept(event);
    if (status !== 'accepted') throw new Error(`${event.id} was answered ${status}`);
  }

  /**
   * @param fails whether the config has one more sink, which cannot be opened
   * @throws MillraceError sink_waited_for, or config_invalid when it `fails`; nothing has changed then
   */
  async reload(settings: Settings, fails: boolean): Promise<void> {
    const next = planOf(this.#world, this.#alive, settings, fails);
    await this.#delivery.prepare(next, this.#never);
    await this.#plan.replace(next);
    // The receiver waits for it within its deadline, and then continues as well.
    void this.#delivery.part(this.#never).catch(() => undefined);
  }

  /** The sinks that events can wait for, open or not. */
  async places(): Promise<ReadonlySet<string>> {
    return new Set((await this.#journal.cursors()).map(([sink]) => sink));
  }

  /** What `millrace dead-letters retry` does, for sinks of a config. */
  async retryLetters(sinks: readonly string[]): Promise<void> {
    for (const sink of sinks) await this.#journal.retryDeadLetters({ sink });
  }

  /** The same while nothing runs. */
  static async retryLetters(world: World, sinks: readonly string[]): Promise<void> {
    const { journal } = openJournal(world);
    for (const sink of sinks) await journal.retryDeadLetters({ sink });
    await journal.close();
  }

  async giveUp(sink: string): Promise<void> {
    await this.#delivery.giveUp(sink);
  }

  /** True when nothing waits for any sink. */
  async isDrained(): Promise<boolean> {
    const { cursors } = await this.#journal.status();
    return cursors.every(({ backlog }) => backlog === 0);
  }

  async letters(): Promise<readonly { readonly id: string; readonly sink: string }[]> {
    const found = await this.#journal.listDeadLetters({ limit: 100_000 });
    return found.map(({ sink, event }) => ({ id: event.id, sink }));
  }

  async stop(): Promise<void> {
    await this.#delivery.stop(this.#never);
    this.#alive.now = false;
    await this.#journal.close();
  }

  kill(): void {
    this.#alive.now = false;
    this.#kill();
  }
}

function openJournal({ folder, clock }: World): ReturnType<typeof inlineJournal> {
  return inlineJournal(folder, clock, { retention: RETENTION });
}

function planOf(
  world: World,
  alive: { readonly now: boolean },
  { sinks: names, routes, continues }: Settings,
  fails = false,
): DeliveryPlan {
  const sinks = names.map((name) => {
    const own = {
      continues: continues?.heir === name ? continues.old : null,
      fingerprint: JSON.stringify([name, routes.map(({ to }) => to.includes(name))]),
    };
    return [name, planned(() => sinkAt(world, alive, name), own)] as const;
  });
  const wrong = [['wrong', planned(() => WRONG, { fingerprint: 'wrong' })] as const];
  const config = {
    routes: routes.map(({ type, to }) => ({
      match: [type],
      to: to.map((sink) => ({ sink, destination: null })),
    })),
  };
  return { sinks: new Map([...sinks, ...(fails ? wrong : [])]), config };
}

const WRONG: Sink = {
  limits: LIMITS,
  open: () => Promise.reject(new MillraceError('config_invalid', 'it cannot be opened')),
  send: () => Promise.resolve([]),
  close: () => Promise.resolve(),
};

/** The far side lives in the world; what a dead process sends does not reach it. */
function sinkAt(world: World, alive: { readonly now: boolean }, name: string): Sink {
  return {
    limits: { ...LIMITS, batchCount: 3, inFlight: 2 },
    open: () => Promise.resolve(),
    async send(batch) {
      await new Promise((resolve) => setImmediate(resolve));
      if (!alive.now) return new Promise<never>(() => undefined);
      if (world.isBlocked(name))
        return batch.map(() => ({ status: 'retry', reason: 'blocked', sink: true }) as const);
      for (const { event } of batch) world.deliver(name, event.id);
      return batch.map(() => DELIVERED);
    },
    close: () => Promise.resolve(),
  };
}

/** The journal, but nobody finds what waits in it. */
function forgetful(journal: SqliteJournal): Journal {
  return new Proxy(journal, {
    get(target, key) {
      if (key === 'heads') return () => Promise.resolve([]);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
