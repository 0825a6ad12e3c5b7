import { messageOf } from '../core/errors.ts';
import type { Sink, SinkContext, SinkModule } from '../core/sink.ts';
import type { Dispatcher, RemoveOptions } from './dispatcher.ts';
import type { FeedOptions } from './feed-options.ts';

/** One sink of a plan, before anything is opened. */
export interface PlannedSink {
  readonly module: Pick<SinkModule, 'createSink'>;
  /** What `module.parseOptions` returned. */
  readonly options: unknown;
  /** The files sink that keeps its large events; null when they become dead letters. */
  readonly keeper: string | null;
  /** The sink it continues for; null for one that begins at the end of the journal. */
  readonly continues: string | null;
  /** Equal when nothing about the sink, its keeper or the routes to it has changed. */
  readonly fingerprint: string;
  /** The routes to it, as text, when any of them redacts; null otherwise. */
  readonly redacting: string | null;
}

export interface PlannedSinks {
  readonly sinks: ReadonlyMap<string, PlannedSink>;
}

/** A sink that answers within this time has nothing in its way. */
const PROMPT_MS = 1000;

/** Notes in the journal that sink `to` continues for `from`. */
type Succeed = (from: string, to: string) => Promise<void>;

/** The context of every sink. */
export type SinkParts = Omit<SinkContext, 'name' | 'takeBack'>;

/** The open sinks, and how they become those of another plan. */
export class LiveSinks {
  readonly #dispatcher: Dispatcher;
  readonly #parts: SinkParts;
  readonly #isPatient: (name: string) => boolean;
  readonly #open = new Map<string, Sink>();
  /** What each open sink was made from: one that is being removed is in no plan. */
  readonly #planned = new Map<string, PlannedSink>();

  /** @param isPatient whether `open` returns also when the sink cannot be opened, which is then retried */
  constructor(dispatcher: Dispatcher, parts: SinkParts, isPatient = (_name: string): boolean => false) {
    this.#dispatcher = dispatcher;
    this.#isPatient = isPatient;
    this.#parts = parts;
  }

  /** Opens all sinks of the first plan, side by side. They load nothing until `Dispatcher.begin`. */
  async open(plan: PlannedSinks): Promise<void> {
    // All are made before the first is opened, so that every keeper is there for the sinks that use it.
    for (const [name, sink] of plan.sinks) this.#make(name, sink);
    await Promise.all(
      Array.from(plan.sinks, ([name, sink]) => this.#start(name, sink, this.#isPatient(name))),
    );
  }

  get names(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** The open sinks that keep their large events at `keeper`. */
  keptBy(keeper: string): readonly string[] {
    return [...this.#planned].flatMap(([name, sink]) => (sink.keeper === keeper ? [name] : []));
  }

  /**
   * Opens new sinks and reopens changed ones, side by side; removed ones stay. They load nothing until `Dispatcher.begin`.
   * @param successors new sinks by the name of the sink that each continues for
   * @param succeed called for each of these, when neither of the two is open
   * @throws what a sink throws that cannot be opened, after the earlier sinks have been opened again, in the background if need be
   */
  async change(
    to: PlannedSinks,
    signal: AbortSignal,
    successors: ReadonlyMap<string, string> = new Map(),
    succeed: Succeed = () => Promise.resolve(),
  ): Promise<void> {
    const changed = [...to.sinks].filter(
      ([name, sink]) => this.#planned.get(name)?.fingerprint !== sink.fingerprint,
    );
    const predecessorOf = (name: string, { continues }: PlannedSink): string | null =>
      continues !== null && successors.get(continues) === name ? continues : null;
    const undo: (() => Promise<void>)[] = [];
    /** Sinks that could not be opened: another may have had their folder, and has closed it since. */
    const again: (() => Promise<void>)[] = [];
    const reopen = async ([name, sink]: readonly [string, PlannedSink]): Promise<void> => {
      const before = this.#planned.get(name);
      undo.push(() =>
        before === undefined
          ? this.remove(name, signal, { forget: true })
          : this.#reopen(name, before, signal, true),
      );
      const old = predecessorOf(name, sink);
      const predecessor = old === null ? undefined : this.#planned.get(old);
      if (old !== null && predecessor !== undefined) {
        await this.remove(old, signal, { sendsLoaded: !redactsMore(sink, predecessor) });
        undo.push(() => this.#reopen(old, predecessor, signal, true));
        await succeed(old, name);
        undo.push(async () => {
          await this.remove(name, signal);
          await succeed(name, old);
        });
      }
      await this.#reopen(name, sink, signal).catch((error: unknown) => {
        if (changed.length === 1) throw error;
        again.push(() => this.#reopen(name, sink, signal));
      });
    };
    try {
      const closing = changed.map(([name, sink]) => [name, predecessorOf(name, sink) ?? name] as const);
      const prompt = await this.#prompt(closing);
      // Slow ones first: a sink that has been reopened loads nothing until all have.
      for (const isPrompt of [false, true]) {
        const reopened = changed.filter(([name]) => prompt.has(name) === isPrompt).map(reopen);
        const failed = (await Promise.allSettled(reopened)).find(({ status }) => status === 'rejected');
        if (failed?.status === 'rejected') throw failed.reason;
      }
      for (const open of again) await open();
    } catch (error) {
      for (const step of undo.toReversed())
        await step().catch((cause: unknown) => {
          const fields = { error: messageOf(cause) };
          this.#parts.log.error(fields, 'a sink of the earlier config could not be opened again');
        });
      this.#dispatcher.begin();
      throw error;
    }
  }

  /** The sink itself, while it is open. */
  get(name: string): Sink | undefined {
    return this.#open.get(name);
  }

  async remove(name: string, signal: AbortSignal, options: RemoveOptions = {}): Promise<void> {
    await this.#dispatcher.remove(name, signal, options);
    this.#open.delete(name);
    this.#planned.delete(name);
  }

  /** The sinks for which the one to be closed soon answers all that it has been sent by now. */
  async #prompt(closing: readonly (readonly [name: string, closed: string])[]): Promise<ReadonlySet<string>> {
    const prompt = new Set<string>();
    if (closing.length === 1) return prompt;
    const late = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(PROMPT_MS, late.resolve);
    const all = closing.map(async ([name, closed]) => {
      await this.#dispatcher.answeredBy(closed);
      prompt.add(name);
    });
    await Promise.race([Promise.all(all), late.promise]);
    cancel();
    return new Set(prompt);
  }

  /** @param isPatient retries `open` in the background after any error */
  async #reopen(name: string, sink: PlannedSink, signal: AbortSignal, isPatient = false): Promise<void> {
    await this.remove(name, signal, { sendsLoaded: !redactsMore(sink, this.#planned.get(name)) });
    this.#make(name, sink);
    await this.#start(name, sink, isPatient);
  }

  #make(name: string, sink: PlannedSink): void {
    const { module, options } = sink;
    const takeBack: SinkContext['takeBack'] = (gone) => this.#dispatcher.takeBack(name, gone);
    // Without a way into a journal, there is none to read again.
    const journaled = this.#parts.inlet === undefined ? {} : { takeBack };
    this.#planned.set(name, sink);
    this.#open.set(name, module.createSink(options, { name, ...this.#parts, ...journaled }));
  }

  async #start(name: string, { keeper }: PlannedSink, patient: boolean): Promise<void> {
    const sink = this.#open.get(name);
    if (sink === undefined) return;
    const keep = keeper === null ? {} : { keep: this.#keepAt(keeper) };
    await this.#dispatcher.add(name, sink, { ...keep, patient });
  }

  /** Looks the keeper up each time: a reload may reopen it after the sinks that use it. */
  #keepAt(keeper: string): NonNullable<FeedOptions['keep']> {
    return async (event, signal) => {
      const sink = this.#open.get(keeper);
      if (sink?.keep === undefined) throw new Error(`${keeper} is not open`);
      return sink.keep(event, signal);
    };
  }
}

/** Whether the next routes redact otherwise: then loaded events are not sent, but loaded again. */
function redactsMore({ redacting }: PlannedSink, before: PlannedSink | undefined): boolean {
  return redacting !== null && redacting !== before?.redacting;
}
