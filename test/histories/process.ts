import { NOWHERE_ERASED, type World } from './world.ts';
import type { Event } from '../../src/core/event.ts';
import { MillraceError } from '../../src/core/errors.ts';
import type { Journal } from '../../src/core/journal.ts';
import { DELIVERED, type Sink, type SinkModule } from '../../src/core/sink.ts';
import { Dispatcher } from '../../src/deliver/dispatcher.ts';
import { Delivery, dropSink, type DeliveryPlan } from '../../src/deliver/delivery.ts';
import { answer } from '../../src/journal/perform.ts';
import { SqliteJournal, type SqliteJournalOptions } from '../../src/journal/sqlite-journal.ts';
import { Cell } from '../../src/lib/live.ts';
import { Store } from '../../src/journal/store.ts';
import type { Writer } from '../../src/journal/writer-thread.ts';
import { LiveSinks, type PlannedSink } from '../../src/deliver/live-sinks.ts';
import { LIMITS, silentLog } from '../deliver/support.ts';
import type { Settings } from './settings.ts';

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
  readonly #writer: InlineWriter;
  /** One for each process: what waits for one that all share would be kept for ever. */
  readonly #never = new AbortController().signal;

  private constructor(parts: {
    world: World;
    journal: SqliteJournal;
    delivery: Delivery;
    plan: Cell<DeliveryPlan>;
    alive: { now: boolean };
    writer: InlineWriter;
  }) {
    this.#world = parts.world;
    this.#journal = parts.journal;
    this.#delivery = parts.delivery;
    this.#plan = parts.plan;
    this.#alive = parts.alive;
    this.#writer = parts.writer;
  }

  /** @throws MillraceError sink_waited_for */
  static async start(world: World, settings: Settings, defects: Defects): Promise<Process> {
    const options = optionsOf(world);
    const alive = { now: true };
    const writer = new InlineWriter(new Store(options));
    const journal = new SqliteJournal(writer, options);
    const dispatcher = new Dispatcher({
      journal,
      clock: world.clock,
      log: silentLog,
      retry: { initial: 10, max: 100, giveUpAfter: 0 },
      sendTimeout: 1e6,
      maxPending: 4,
      maxPendingBytes: 1e6,
      targetsOf: (event) =>
        defects.routesOfNow === true
          ? delivery.targetsOf({ ...event, seq: Number.MAX_SAFE_INTEGER })
          : delivery.targetsOf(event),
      routes: () => delivery.routes,
    });
    const sinks = new LiveSinks(dispatcher, { log: silentLog, clock: world.clock });
    const seen = defects.forgetsSinks === true ? forgetful(journal) : journal;
    const plan = new Cell(planOf(world, alive, settings));
    const delivery: Delivery = new Delivery({
      plan,
      dispatcher,
      sinks,
      routes: journal,
      journal: seen,
      isErased: NOWHERE_ERASED,
      clock: world.clock,
      log: silentLog,
    });
    try {
      await delivery.start();
    } catch (error) {
      alive.now = false;
      await writer.close();
      throw error;
    }
    return new Process({ world, journal, delivery, plan, alive, writer });
  }

  /** What `millrace sink drop` does while nothing runs. */
  static async drop(world: World, sink: string): Promise<void> {
    const options = optionsOf(world);
    const journal = new SqliteJournal(new InlineWriter(new Store(options)), options);
    await dropSink(journal, sink, NOWHERE_ERASED, world.clock.now());
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
    const options = optionsOf(world);
    const journal = new SqliteJournal(new InlineWriter(new Store(options)), options);
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

  /** What is committed stays, and nothing else. */
  kill(): void {
    this.#alive.now = false;
    this.#writer.dead = true;
    void this.#writer.close();
  }
}

function optionsOf(world: World): SqliteJournalOptions {
  return {
    path: world.folder,
    retention: RETENTION,
    maxBytes: 1e9,
    dedupWindow: 1e6,
    create: true,
    clock: world.clock,
    onFailure: (error) => {
      throw error;
    },
  };
}

/** The writer thread without a thread: it answers in a later turn, and never again once it is dead. */
export class InlineWriter implements Writer {
  readonly #store: Store;
  readonly lastSeq: number;
  readonly repairs: Writer['repairs'];
  dead = false;

  constructor(store: Store) {
    this.#store = store;
    this.lastSeq = store.lastSeq;
    this.repairs = store.repairs;
  }

  readonly call: Writer['call'] = async (call) => {
    await new Promise((resolve) => setImmediate(resolve));
    if (this.dead) return new Promise<never>(() => undefined);
    const reply = answer(this.#store, call);
    if (!reply.ok) throw new MillraceError(reply.code, reply.detail);
    return reply.value;
  };

  close(): Promise<void> {
    this.#store.close();
    this.dead = true;
    return Promise.resolve();
  }
}

function planOf(
  world: World,
  alive: { readonly now: boolean },
  settings: Settings,
  fails = false,
): DeliveryPlan {
  const sinks = new Map<string, PlannedSink>();
  for (const name of settings.sinks) {
    const module: SinkModule = {
      parseOptions: (value) => value,
      createSink: () => sinkAt(world, alive, name),
    };
    sinks.set(name, {
      module,
      options: {},
      keeper: null,
      continues: settings.continues?.heir === name ? settings.continues.old : null,
      fingerprint: JSON.stringify([name, settings.routes.map(({ to }) => to.includes(name))]),
      redacting: null,
    });
  }
  if (fails) sinks.set('wrong', WRONG);
  const routes = settings.routes.map(({ type, to }) => ({
    match: [type],
    to: to.map((sink) => ({ sink, destination: null })),
  }));
  return { sinks, config: { routes } };
}

const WRONG: PlannedSink = {
  module: {
    parseOptions: (value) => value,
    createSink: () => ({
      limits: LIMITS,
      open: () => Promise.reject(new MillraceError('config_invalid', 'it cannot be opened')),
      send: () => Promise.resolve([]),
      close: () => Promise.resolve(),
    }),
  },
  options: {},
  keeper: null,
  continues: null,
  fingerprint: 'wrong',
  redacting: null,
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
