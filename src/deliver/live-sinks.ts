import type { ErasableStore } from '../core/erasure.ts';
import { messageOf } from '../core/errors.ts';
import type { Flushed, Sink, SinkContext, SinkModule } from '../core/sink.ts';
import type { Dispatcher, Removal } from './dispatcher.ts';
import type { Keep, Loaded } from './feed-options.ts';

/** One sink as it is to be, before anything is opened. */
export interface PlannedSink {
  readonly module: Pick<SinkModule, 'createSink'>;
  /** What `module.parseOptions` returned. */
  readonly options: unknown;
  /** The files sink that keeps its large events; null when they become dead letters. */
  readonly keeper: string | null;
  /** The sink it continues for; null for one that begins at the end of the journal. */
  readonly continues: string | null;
  /** Equal when nothing about the sink, its keeper or the routes to it has changed: what is loaded goes by its old route. */
  readonly fingerprint: string;
  /** The routes to it, as text, when any of them redacts; null when all leaves. */
  readonly redacting: string | null;
}

export interface PlannedSinks {
  readonly sinks: ReadonlyMap<string, PlannedSink>;
}

/** Milliseconds in which a sink answers that has nothing in its way. */
const PROMPT = 1000;

/** Tells the journal that one sink continues for another. */
export type Succeed = (from: string, to: string) => Promise<void>;

/** The sinks that are open now, and how they become those of another plan. */
export class LiveSinks {
  readonly #dispatcher: Dispatcher;
  readonly #parts: Omit<SinkContext, 'name' | 'takeBack'>;
  readonly #isPatient: (name: string) => boolean;
  readonly #open = new Map<string, Sink>();
  /** What each of them was opened by: one that is leaving is in no plan. */
  readonly #planned = new Map<string, PlannedSink>();

  /** @param isPatient whether a start goes on without a sink, whatever is in the way of it, and tries it again and again */
  constructor(
    dispatcher: Dispatcher,
    parts: Omit<SinkContext, 'name' | 'takeBack'>,
    isPatient = (_name: string): boolean => false,
  ) {
    this.#dispatcher = dispatcher;
    this.#isPatient = isPatient;
    this.#parts = parts;
  }

  /** Opens all the sinks of the first plan, side by side. They load nothing until the dispatcher lets them begin. */
  async open(plan: PlannedSinks): Promise<void> {
    // All made before the first is opened, so that every keeper is there for whoever needs it.
    for (const [name, sink] of plan.sinks) this.#make(name, sink);
    await Promise.all(
      Array.from(plan.sinks, ([name, sink]) => this.#start(name, sink, this.#isPatient(name))),
    );
  }

  get names(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** The open sinks whose large events a sink keeps. */
  keptBy(keeper: string): readonly string[] {
    return [...this.#planned].flatMap(([name, sink]) => (sink.keeper === keeper ? [name] : []));
  }

  /**
   * Adds what is new and exchanges what has changed, side by side; what is gone stays. They load nothing until the dispatcher lets them
   * begin. If one cannot be opened, the earlier ones are brought back before the error is passed on; what is in the way of
   * one of these is waited for.
   * @param heirs the sinks that continue for others, by the name of the other
   * @param succeed called for each of these, when neither of the two is open
   */
  async change(
    to: PlannedSinks,
    signal: AbortSignal,
    heirs: ReadonlyMap<string, string>,
    succeed: Succeed,
  ): Promise<void> {
    const changed = [...to.sinks].filter(
      ([name, sink]) => this.#planned.get(name)?.fingerprint !== sink.fingerprint,
    );
    const undo: (() => Promise<void>)[] = [];
    /** What could not be opened yet: another may have held its folder, that has let go of it meanwhile. */
    const again: (() => Promise<void>)[] = [];
    const turn = async ([name, sink]: readonly [string, PlannedSink]): Promise<void> => {
      const before = this.#planned.get(name);
      const old = sink.continues;
      const predecessor = old === null || heirs.get(old) !== name ? undefined : this.#planned.get(old);
      undo.push(() =>
        before === undefined
          ? this.remove(name, signal, { forget: true })
          : this.#exchange(name, before, signal, true),
      );
      if (old !== null && predecessor !== undefined) {
        await this.remove(old, signal, { loaded: loadedFor(sink, predecessor) });
        undo.push(() => this.#exchange(old, predecessor, signal, true));
        await succeed(old, name);
        undo.push(async () => {
          await this.remove(name, signal);
          await succeed(name, old);
        });
      }
      await this.#exchange(name, sink, signal).catch((error: unknown) => {
        if (changed.length === 1) throw error;
        again.push(() => this.#exchange(name, sink, signal));
      });
    };
    try {
      const prompt = await this.#prompt(
        changed.map(([name, { continues }]) => {
          const isHeir = continues !== null && heirs.get(continues) === name;
          return [isHeir ? continues : name, name];
        }),
      );
      // Those that take long to let go come first: until all have changed, one that has changed stands still.
      for (const isPrompt of [false, true]) {
        const turns = changed.filter(([name]) => prompt.has(name) === isPrompt).map(turn);
        const failed = (await Promise.allSettled(turns)).find(({ status }) => status === 'rejected');
        if (failed?.status === 'rejected') throw failed.reason;
      }
      for (const exchange of again) await exchange();
    } catch (error) {
      for (const step of undo.toReversed())
        await step().catch((cause: unknown) => this.#noteLeftUndone(cause));
      this.#dispatcher.begin();
      throw error;
    }
  }

  /** Lets a sink finish the files for which `holds` answers true; a sink that is not open has none of its own. */
  async settle(name: string, holds: (path: string) => Promise<boolean>): Promise<void> {
    await this.#open.get(name)?.settle?.(holds);
  }

  /** Whether a sink keeps files open that it can close before their time. */
  canFlush(name: string): boolean {
    return this.#open.get(name)?.flush !== undefined;
  }

  /** @throws whatever the sink throws */
  async flush(name: string): Promise<Flushed> {
    return (await this.#open.get(name)?.flush?.()) ?? { files: [], failed: [] };
  }

  /** What a sink has to clear for an erasure beside its files; null for one that has nothing, or is not open. */
  erasable(name: string): ErasableStore | null {
    return this.#open.get(name)?.erasable?.() ?? null;
  }

  async remove(name: string, signal: AbortSignal, removal: Removal = {}): Promise<void> {
    await this.#dispatcher.remove(name, signal, removal);
    this.#open.delete(name);
    this.#planned.delete(name);
  }

  /** Of these sinks, each with the one that it is there for, those that soon answer what they have been sent by now. */
  async #prompt(sinks: readonly (readonly [sink: string, forWhom: string])[]): Promise<ReadonlySet<string>> {
    const prompt = new Set<string>();
    if (sinks.length === 1) return prompt;
    const late = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(PROMPT, late.resolve);
    const all = sinks.map(async ([sink, forWhom]) => {
      await this.#dispatcher.answeredBy(sink);
      prompt.add(forWhom);
    });
    await Promise.race([Promise.all(all), late.promise]);
    cancel();
    return new Set(prompt);
  }

  /** @param patient whether it is tried again in the background, whatever is in the way */
  async #exchange(name: string, sink: PlannedSink, signal: AbortSignal, patient = false): Promise<void> {
    await this.remove(name, signal, { loaded: loadedFor(sink, this.#planned.get(name)) });
    this.#make(name, sink);
    await this.#start(name, sink, patient);
  }

  #noteLeftUndone(error: unknown): void {
    this.#parts.log.error({ error: messageOf(error) }, 'a change of sinks could not be taken back');
  }

  #make(name: string, sink: PlannedSink): void {
    const { module, options } = sink;
    const takeBack: SinkContext['takeBack'] = (gone) => this.#dispatcher.takeBack(name, gone);
    // Where there is no way into the journal, there is none to read again.
    const journaled = this.#parts.inlet === undefined ? {} : { takeBack };
    this.#planned.set(name, sink);
    this.#open.set(name, module.createSink(options, { name, ...this.#parts, ...journaled }));
  }

  async #start(name: string, { keeper }: PlannedSink, patient = false): Promise<void> {
    const sink = this.#open.get(name);
    if (sink === undefined) return;
    const keep = keeper === null ? {} : { keep: this.#keepAt(keeper) };
    await this.#dispatcher.add(name, sink, { ...keep, patient });
  }

  /** Asks each time for the keeper that is open then: a reload may exchange it after the sinks that use it. */
  #keepAt(keeper: string): Keep {
    return async (event, signal) => {
      const sink = this.#open.get(keeper);
      if (sink?.keep === undefined) throw new Error(`${keeper} is not open`);
      return sink.keep(event, signal);
    };
  }
}

/** What the next routes let less out of is loaded anew, and goes by these. */
function loadedFor({ redacting }: PlannedSink, before: PlannedSink | undefined): Loaded {
  return redacting === null || redacting === before?.redacting ? 'finished' : 'left';
}
