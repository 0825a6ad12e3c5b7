import type { Clock } from '../core/clock.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import type { JournalEvent } from '../core/event.ts';
import type { Journal, RouteKeeper } from '../core/journal.ts';
import type { GivenUp } from '../core/operations.ts';
import type { Route } from '../core/route.ts';
import { NO_ROUTES } from '../core/route-record.ts';
import type { SinkLog } from '../core/sink.ts';
import type { Dispatcher } from './dispatcher.ts';
import { deadLetterWaiting, countWaiting, type WaitingFor } from './waiting.ts';
import { orAborted, untilAborted } from '../lib/abort.ts';
import type { Live } from '../lib/live.ts';
import type { LiveSinks, PlannedSinks } from './live-sinks.ts';
import { AcceptedRoutes } from './routes/accepted.ts';

export interface DeliveryParts {
  readonly plan: Live<DeliveryPlan>;
  readonly dispatcher: Dispatcher;
  readonly sinks: LiveSinks;
  readonly routes: RouteKeeper;
  /** Null where nothing waits on disk, with `acknowledge: delivered`. */
  readonly journal: Journal | null;
  readonly isErased: (event: JournalEvent) => boolean;
  readonly clock: Clock;
  readonly log: SinkLog;
}

/** What of a plan decides about delivering. */
export interface DeliveryPlan extends PlannedSinks {
  readonly config: { readonly routes: readonly Route[] };
}

/**
 * Delivering by a plan, and how it becomes delivering by another, without an event that falls in between: see
 * AcceptedRoutes for the rule.
 *
 * A sink is open → leaving (no plan names it and nothing new is for it; it delivers what it still has to) → left.
 */
export class Delivery {
  readonly #parts: DeliveryParts;
  #accepted = new AcceptedRoutes(NO_ROUTES);
  readonly #leaving = new Map<string, Leaving>();
  /** Sinks a person has given up: the reload that takes them out makes dead letters of what waits for them. */
  readonly #givenUp = new Set<string>();

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    // Where the journal cannot note the routes, all that is open continues with the earlier ones.
    parts.plan.subscribe((plan) => this.#acceptUnder(plan).finally(() => parts.dispatcher.begin()));
  }

  /** The routes of now, and where events went by earlier ones. */
  get routes(): AcceptedRoutes {
    return this.#accepted;
  }

  /**
   * Opens the sinks of the plan and begins to deliver; when it fails none of them stays open.
   * @throws MillraceError sink_waited_for when the journal has events for a sink that the plan has not
   */
  async start(): Promise<void> {
    await this.#open().catch(async (error: unknown) => {
      await this.stop(AbortSignal.abort());
      throw error;
    });
    this.#parts.dispatcher.begin();
  }

  async #open(): Promise<void> {
    const { journal, sinks } = this.#parts;
    const plan = this.#parts.plan.value;
    if (journal === null) {
      await sinks.open(plan);
      await this.#acceptUnder(plan);
    } else {
      this.#accepted = new AcceptedRoutes(await journal.routes());
      const { renamed, absent } = await this.#takeOver(plan, journal);
      await sinks.open(plan).catch(async (error: unknown) => {
        // The next start may be with the earlier config.
        for (const { from, to } of renamed) await journal.succeed(to, from);
        throw error;
      });
      await this.#acceptUnder(plan);
      // Only now is nothing for them any more: until then a start can fail, and a person put events back.
      for (const name of absent) await journal.leave(name);
    }
  }

  /**
   * Opens what is new and exchanges what has changed, before the plan is replaced by `to`: from then on its routes decide.
   * Sinks that `to` does not name are there until `part`. When it fails all is as before.
   * @throws MillraceError sink_waited_for, and what LiveSinks.change throws
   */
  async prepare(to: DeliveryPlan, signal: AbortSignal): Promise<void> {
    const { journal, sinks } = this.#parts;
    const named = new Set(Array.from(to.sinks, ([name, { continues }]) => [name, continues]).flat());
    const recalled = [...this.#leaving.keys()].filter((name) => named.has(name));
    for (const name of recalled) await this.#recall(name);
    try {
      const heirs = journal === null ? NOBODY : await this.#heirsOf(to, journal);
      await sinks.change(to, signal, heirs, async (old, heir) => {
        if (journal !== null) this.#accepted = new AcceptedRoutes(await journal.succeed(old, heir));
      });
    } catch (error) {
      for (const name of recalled)
        if (journal !== null && sinks.names.includes(name)) void this.#begin(name, journal, false);
      throw error;
    }
  }

  /** Lets the sinks go that the plan does not name; waits for them until `signal` aborts, and then they continue alone. */
  async part(signal: AbortSignal): Promise<void> {
    const { sinks, journal, log, plan } = this.#parts;
    const gone = sinks.names.filter((name) => !plan.value.sinks.has(name) && !this.#leaving.has(name));
    await Promise.all(
      gone.map(async (name) => {
        if (journal === null) return sinks.remove(name, signal);
        await orAborted(this.#begin(name, journal, this.#givenUp.has(name)), signal);
        if (this.#leaving.has(name)) log.warn({ sink: name }, 'sink was removed; events still wait for it');
      }),
    );
    this.#givenUp.clear();
  }

  /** A person gives up what waits for a sink: at once if it is leaving, else when a reload takes it out. */
  async giveUp(sink: string): Promise<GivenUp> {
    const { journal, sinks } = this.#parts;
    if (journal === null || !sinks.names.includes(sink))
      throw new MillraceError('usage', `there is no sink ${sink} that events wait for`);
    const waiting = await countWaiting(await this.#waitingFor(sink, journal));
    if (!this.#leaving.has(sink)) {
      this.#givenUp.add(sink);
      return { sink, dropped: 0, waiting };
    }
    await this.#recall(sink);
    const dropped = sinks.names.includes(sink) ? await this.#begin(sink, journal, true) : 0;
    return { sink, dropped, waiting: 0 };
  }

  async stop(signal: AbortSignal): Promise<void> {
    for (const name of this.#leaving.keys()) await this.#recall(name);
    await this.#parts.dispatcher.stop(signal);
  }

  async #acceptUnder({ config }: DeliveryPlan): Promise<void> {
    // Set in the turn of the answer: nothing accepted after it has been loaded by then.
    const record = await this.#parts.routes.acceptUnder(config.routes);
    this.#accepted = new AcceptedRoutes(record);
  }

  /** What the journal knows of other sinks: renamed, left, or in the way. Nothing is changed when one is in the way. */
  async #takeOver(
    plan: DeliveryPlan,
    journal: Journal,
  ): Promise<{
    readonly renamed: readonly { readonly from: string; readonly to: string }[];
    /** Nothing waits for them. */
    readonly absent: readonly string[];
  }> {
    const cursors = new Map(await journal.cursors());
    const absent = [...cursors.keys()].filter((name) => !plan.sinks.has(name));
    const known = new Set([...cursors.keys(), ...(await journal.routes()).left]);
    const { heirs, blocked } = successions(plan, absent, known);
    const counted = new Map<string, number>();
    for (const name of absent)
      if (!heirs.has(name)) counted.set(name, await countWaiting(await this.#waitingFor(name, journal)));
    refuseWaiting(counted, blocked);
    const renamed = Array.from(heirs, ([from, to]) => ({ from, to }));
    for (const { from, to } of renamed) this.#accepted = new AcceptedRoutes(await journal.succeed(from, to));
    return { renamed, absent: [...counted.keys()] };
  }

  /**
   * The sinks that others continue for.
   * @throws MillraceError sink_waited_for for a sink in trouble, which cannot deliver what waits for it before it goes
   */
  async #heirsOf(to: PlannedSinks, journal: Journal): Promise<ReadonlyMap<string, string>> {
    const { sinks, dispatcher } = this.#parts;
    const going = dispatcher.status().filter(({ sink }) => !to.sinks.has(sink) && !this.#leaving.has(sink));
    const known = new Set([...sinks.names, ...(await journal.routes()).left]);
    const names = going.map(({ sink }) => sink);
    const { heirs, blocked } = successions(to, names, known);
    const counted = new Map<string, number>();
    for (const { sink } of going) {
      const goesByItself = dispatcher.isWell(sink) && !blocked.has(sink);
      if (heirs.has(sink) || this.#givenUp.has(sink) || goesByItself) continue;
      counted.set(sink, await countWaiting(await this.#waitingFor(sink, journal)));
    }
    refuseWaiting(counted, blocked);
    return heirs;
  }

  async #waitingFor(sink: string, journal: Journal): Promise<WaitingFor> {
    const after = new Map(await journal.cursors()).get(sink) ?? 0;
    return { journal, sink, after, routes: this.#accepted };
  }

  /** Resolves when the removed sink is done, or is recalled. @returns dead letters made */
  #begin(sink: string, journal: Journal, givenUp: boolean): Promise<number> {
    const recall = new AbortController();
    const work = this.#leave(sink, journal, givenUp, recall.signal)
      .catch((error: unknown) => {
        this.#parts.log.error({ sink, error: messageOf(error) }, 'a removed sink could not be closed');
        return 0;
      })
      .finally(() => this.#leaving.delete(sink));
    this.#leaving.set(sink, { recall, work });
    return work;
  }

  async #leave(sink: string, journal: Journal, givenUp: boolean, recalled: AbortSignal): Promise<number> {
    const { dispatcher, sinks, isErased, clock, log } = this.#parts;
    if (!givenUp) {
      const passed = dispatcher.passed(sink).then(async () => this.#usersOf(sink));
      await Promise.race([passed, untilAborted(recalled)]);
    }
    if (recalled.aborted) return 0;
    await sinks.remove(sink, givenUp ? AbortSignal.abort() : recalled);
    const letters = givenUp
      ? await deadLetterWaiting(await this.#waitingFor(sink, journal), isErased, clock.now())
      : 0;
    await journal.leave(sink);
    log.info({ sink, letters }, 'removed sink is done');
    return letters;
  }

  /** Resolves when the sinks that keep their large events here have left; others have another keeper by now. */
  async #usersOf(keeper: string): Promise<void> {
    for (const name of this.#parts.sinks.keptBy(keeper)) await this.#leaving.get(name)?.work;
  }

  /** A sink that is leaving stays, unless it is past what it waited for: then it has left. */
  async #recall(sink: string): Promise<void> {
    const leaving = this.#leaving.get(sink);
    leaving?.recall.abort();
    await leaving?.work;
  }
}

interface Leaving {
  readonly recall: AbortController;
  readonly work: Promise<number>;
}

/**
 * Who continues for whom, by the name of the one who goes: `blocked` where the heir has had a place of its own, so that it
 * cannot take over another.
 */
function successions(
  { sinks }: PlannedSinks,
  going: readonly string[],
  known: ReadonlySet<string>,
): { readonly heirs: ReadonlyMap<string, string>; readonly blocked: ReadonlyMap<string, string> } {
  const heirs = new Map<string, string>();
  const blocked = new Map<string, string>();
  for (const [name, { continues }] of sinks)
    if (continues !== null && going.includes(continues))
      (known.has(name) ? blocked : heirs).set(continues, name);
  return { heirs, blocked };
}

/** @throws MillraceError naming the sinks that events wait for, how many, and what can be done */
function refuseWaiting(waiting: ReadonlyMap<string, number>, blocked: ReadonlyMap<string, string>): void {
  const lines = [...waiting].flatMap(([sink, count]) => {
    if (count === 0) return [];
    const heir = blocked.get(sink);
    const why =
      heir === undefined
        ? 'it is no longer in the config'
        : `sinks.${heir}.continues cannot take them over, because ${heir} has its own position in the journal`;
    return [
      `sinks.${sink}: ${count} events wait for it, and ${why}. Put it back, let a new sink continue for it ` +
        `(sinks.<new>.continues: ${sink}), or make dead letters of them (millrace sink drop ${sink})`,
    ];
  });
  if (lines.length > 0) throw new MillraceError('sink_waited_for', lines.join('\n'));
}

const NOBODY: ReadonlyMap<string, string> = new Map();
