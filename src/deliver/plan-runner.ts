import { MillraceError, messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { Journal, RouteKeeper } from '../core/journal.ts';
import type { GivenUp } from '../core/operations.ts';
import type { Route } from '../core/route.ts';
import { NO_ROUTES } from '../core/route-record.ts';
import { orAborted, untilAborted } from '../lib/abort.ts';
import type { Live } from '../lib/live.ts';
import { Dispatcher, type DispatcherOptions } from './dispatcher.ts';
import { LiveSinks, type PlannedSinks, type SinkParts } from './live-sinks.ts';
import { AcceptedRoutes } from './routes/accepted.ts';
import { countWaiting, deadLetterWaiting, type WaitingFor } from './waiting.ts';

export interface PlanRunnerOptions {
  readonly plan: Live<DeliveryPlan>;
  /** Options of the dispatcher, which goes by the routes of the plan. */
  readonly feeds: Omit<DispatcherOptions, 'targetsOf' | 'routes'>;
  /** What each sink gets when it is made. */
  readonly context: SinkParts;
  /** Whether a start continues without a sink that cannot be opened. */
  readonly isOptional: (name: string) => boolean;
  readonly routes: RouteKeeper;
  /** Null with `acknowledge: delivered`: nothing waits on disk. */
  readonly journal: Journal | null;
  readonly isErased: (event: JournalEvent) => boolean;
}

export interface DeliveryPlan extends PlannedSinks {
  readonly config: { readonly routes: readonly Route[] };
}

/** A sink that is no longer in the plan, and delivers what it still has to. */
interface Removal {
  /** Aborted to keep the sink. */
  readonly cancel: AbortController;
  /** A person has given the sink up. */
  readonly isGivenUp: boolean;
  /** The dead letters made; resolves when the sink is removed or kept. */
  readonly done: Promise<number>;
}

/**
 * Delivers by a plan, and changes to the next one, so that no event is lost between the two; `AcceptedRoutes` has the rule.
 *
 * A sink is open → being removed (no plan names it, nothing new is for it, it delivers what waits for it) → gone.
 */
export class PlanRunner {
  readonly dispatcher: Dispatcher;
  readonly sinks: LiveSinks;
  readonly #options: PlanRunnerOptions;
  #accepted = new AcceptedRoutes(NO_ROUTES);
  readonly #removals = new Map<string, Removal>();
  /** Sinks that a person has given up: when a reload removes them, what waits for them becomes dead letters. */
  readonly #givenUp = new Set<string>();

  constructor(options: PlanRunnerOptions) {
    this.#options = options;
    this.dispatcher = new Dispatcher({
      targetsOf: (event) => this.#accepted.targetsOf(event),
      routes: () => this.#accepted,
      ...options.feeds,
    });
    this.sinks = new LiveSinks(this.dispatcher, options.context, options.isOptional);
    // Also when the journal cannot note the routes: sinks that are open then continue with the earlier ones.
    options.plan.subscribe((plan) => this.#acceptUnder(plan).finally(() => this.dispatcher.begin()));
  }

  /** The routes in force, and those that earlier events were accepted under. */
  get routes(): AcceptedRoutes {
    return this.#accepted;
  }

  /**
   * Opens the sinks of the plan and starts delivering; after an error none of them stays open.
   * @throws MillraceError sink_waited_for when events wait for a sink that is not in the plan
   */
  async start(): Promise<void> {
    await this.#open().catch(async (error: unknown) => {
      await this.stop(AbortSignal.abort());
      throw error;
    });
    this.dispatcher.begin();
  }

  async #open(): Promise<void> {
    const { journal, plan: live } = this.#options;
    const { sinks } = this;
    const plan = live.value;
    if (journal === null) {
      await sinks.open(plan);
      return this.#acceptUnder(plan);
    }
    this.#accepted = new AcceptedRoutes(await journal.routes());
    const known = Array.from(await journal.cursors(), ([name]) => name);
    const removed = known.filter((name) => !plan.sinks.has(name));
    const successors = await this.#successorsOf(removed, plan, known, journal);
    for (const [from, to] of successors) this.#accepted = new AcceptedRoutes(await journal.succeed(from, to));
    await sinks.open(plan).catch(async (error: unknown) => {
      // The next start may have the earlier config.
      for (const [from, to] of successors) await journal.succeed(to, from);
      throw error;
    });
    await this.#acceptUnder(plan);
    // Not before: until the start has succeeded, a person may restore events for them.
    for (const name of removed) if (!successors.has(name)) await journal.leave(name);
  }

  /**
   * Opens new sinks and reopens changed ones, before the plan is replaced by `to`. Removed sinks stay until `part`. After an
   * error everything is as before.
   * @throws MillraceError sink_waited_for, and what LiveSinks.change throws
   */
  async prepare(to: DeliveryPlan, signal: AbortSignal): Promise<void> {
    const { journal } = this.#options;
    const { sinks, dispatcher } = this;
    const named = new Set(Array.from(to.sinks, ([name, { continues }]) => [name, continues]).flat());
    const kept = [...this.#removals].filter(([name]) => named.has(name));
    for (const [name] of kept) await this.#cancelRemoval(name);
    try {
      if (journal === null) return await sinks.change(to, signal);
      const removed = dispatcher
        .status()
        .flatMap(({ sink }) => (to.sinks.has(sink) || this.#removals.has(sink) ? [] : [sink]));
      const successors = await this.#successorsOf(removed, to, sinks.names, journal);
      await sinks.change(to, signal, successors, async (from, successor) => {
        this.#accepted = new AcceptedRoutes(await journal.succeed(from, successor));
      });
    } catch (error) {
      for (const [name, { isGivenUp }] of kept)
        if (journal !== null && sinks.names.includes(name)) void this.#startRemoval(name, journal, isGivenUp);
      throw error;
    }
  }

  /** Removes the sinks that are not in the plan; waits for them until `signal` aborts, after that they deliver on their own. */
  async part(signal: AbortSignal): Promise<void> {
    const { journal, plan, context } = this.#options;
    const { sinks } = this;
    const removed = sinks.names.filter((name) => !plan.value.sinks.has(name) && !this.#removals.has(name));
    // What is given up from now on is for the next reload.
    const givenUp = new Set(this.#givenUp);
    this.#givenUp.clear();
    await Promise.all(
      removed.map(async (name) => {
        if (journal === null) return sinks.remove(name, signal);
        await orAborted(this.#startRemoval(name, journal, givenUp.has(name)), signal);
        if (this.#removals.has(name))
          context.log.warn({ sink: name }, 'sink was removed; events still wait for it');
      }),
    );
  }

  /** Makes dead letters of what waits for a sink: now if it is being removed, otherwise when a reload removes it. */
  async giveUp(sink: string): Promise<GivenUp> {
    const { sinks } = this;
    const { journal } = this.#options;
    if (journal === null || !sinks.names.includes(sink))
      throw new MillraceError('usage', `there is no sink ${sink} that events wait for`);
    const waiting = await countWaiting(await this.#waitingFor(sink, journal));
    if (!this.#removals.has(sink)) {
      this.#givenUp.add(sink);
      return { sink, dropped: 0, waiting };
    }
    await this.#cancelRemoval(sink);
    const dropped = sinks.names.includes(sink) ? await this.#startRemoval(sink, journal, true) : 0;
    return { sink, dropped, waiting: 0 };
  }

  async stop(signal: AbortSignal): Promise<void> {
    for (const name of this.#removals.keys()) await this.#cancelRemoval(name);
    await this.dispatcher.stop(signal);
  }

  async #acceptUnder({ config }: DeliveryPlan): Promise<void> {
    // Set in the turn of the answer: nothing accepted after it has been loaded by then.
    const record = await this.#options.routes.acceptUnder(config.routes);
    this.#accepted = new AcceptedRoutes(record);
  }

  /**
   * The removed sinks that a new sink of the plan continues for, with that sink.
   * @param known sinks that have a position in the journal
   * @throws MillraceError sink_waited_for when events wait for a sink without successor that cannot deliver them before it goes
   */
  async #successorsOf(
    removed: readonly string[],
    { sinks }: PlannedSinks,
    known: readonly string[],
    journal: Journal,
  ): Promise<ReadonlyMap<string, string>> {
    const { left } = await journal.routes();
    const successors = new Map<string, string>();
    /** Sinks that would continue, but have a position of their own. */
    const blocked = new Map<string, string>();
    for (const [name, { continues }] of sinks)
      if (continues !== null && removed.includes(continues))
        (known.includes(name) || left.includes(name) ? blocked : successors).set(continues, name);
    const counted = new Map<string, number>();
    for (const sink of removed) {
      const deliversFirst = this.dispatcher.isWell(sink) && !blocked.has(sink);
      if (successors.has(sink) || this.#givenUp.has(sink) || deliversFirst) continue;
      counted.set(sink, await countWaiting(await this.#waitingFor(sink, journal)));
    }
    refuseWaiting(counted, blocked);
    return successors;
  }

  async #waitingFor(sink: string, journal: Journal): Promise<WaitingFor> {
    const after = new Map(await journal.cursors()).get(sink) ?? 0;
    return { journal, sink, after, routes: this.#accepted };
  }

  /** Resolves with the number of dead letters, when the sink is removed or the removal is cancelled. */
  #startRemoval(sink: string, journal: Journal, isGivenUp: boolean): Promise<number> {
    const cancel = new AbortController();
    const done = this.#remove(sink, journal, isGivenUp, cancel.signal)
      .catch((error: unknown) => {
        this.#options.context.log.error(
          { sink, error: messageOf(error) },
          'a removed sink could not be closed',
        );
        return 0;
      })
      .finally(() => this.#removals.delete(sink));
    this.#removals.set(sink, { cancel, isGivenUp, done });
    return done;
  }

  async #remove(sink: string, journal: Journal, isGivenUp: boolean, cancelled: AbortSignal): Promise<number> {
    const { isErased, context } = this.#options;
    const { clock, log } = context;
    if (!isGivenUp) {
      const passed = this.dispatcher.passed(sink).then(async () => this.#usersOf(sink));
      await Promise.race([passed, untilAborted(cancelled)]);
    }
    if (cancelled.aborted) return 0;
    await this.sinks.remove(sink, isGivenUp ? AbortSignal.abort() : cancelled);
    const deadLetters = isGivenUp
      ? await deadLetterWaiting(await this.#waitingFor(sink, journal), isErased, clock.now())
      : 0;
    await journal.leave(sink);
    log.info({ sink, letters: deadLetters }, 'removed sink is done');
    return deadLetters;
  }

  /** Resolves when the sinks that keep their large events at this one are gone, too; others have another keeper by now. */
  async #usersOf(keeper: string): Promise<void> {
    for (const name of this.sinks.keptBy(keeper)) await this.#removals.get(name)?.done;
  }

  /** Keeps a sink, unless its removal is over before it notices. */
  async #cancelRemoval(sink: string): Promise<void> {
    const removal = this.#removals.get(sink);
    removal?.cancel.abort();
    await removal?.done;
  }
}

/** @throws MillraceError naming the sinks that events wait for, how many, and what can be done */
function refuseWaiting(waiting: ReadonlyMap<string, number>, blocked: ReadonlyMap<string, string>): void {
  const lines = [...waiting].flatMap(([sink, count]) => {
    if (count === 0) return [];
    const successor = blocked.get(sink);
    const why =
      successor === undefined
        ? 'it is no longer in the config'
        : `sinks.${successor}.continues cannot take them over, because ${successor} has its own position in the journal`;
    return [
      `sinks.${sink}: ${count} events wait for it, and ${why}. Restore it, let a new sink continue for it ` +
        `(sinks.<new>.continues: ${sink}), or make dead letters of them (millrace sink drop ${sink})`,
    ];
  });
  if (lines.length > 0) throw new MillraceError('sink_waited_for', lines.join('\n'));
}
