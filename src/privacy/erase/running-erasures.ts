import type { Activity } from '../../core/operations.ts';
import type { Clock } from '../../core/clock.ts';
import {
  Owners,
  type ErasureProgress,
  type ErasureResult,
  type Ownership,
  type Said,
} from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { EventStore } from '../../core/journal.ts';
import type { Sink } from '../../core/sink.ts';
import { within } from '../../lib/abort.ts';
import { LocalErasures, type LocalErasuresOptions } from './local-erasures.ts';
import { erasuresOptions, type ErasableJournal, type ErasingParts } from './stores.ts';

/** Milliseconds between two looks for due requests. */
const CHECK_EVERY = 60_000;
/** Milliseconds after which a due request is the receiver's: until then the command that asked for it runs it. */
const LEFT_TO_OTHERS = 10_000;
/** Longest wait, in milliseconds, for batches in flight when an erasure begins. */
export const SETTLE_WAIT = 30_000;
/** Milliseconds after which a folder that does not answer is reported. */
const PATIENCE = 10_000;

/** The running system around the erasures. */
export interface ErasingSystem extends Pick<ErasingParts, 'plan' | 'users' | 'proof' | 'log'> {
  readonly store: Pick<EventStore, 'settled' | 'lastSeq'>;
  /** Null when nothing is kept on disk. */
  readonly journal: ErasableJournal | null;
  readonly dispatcher: {
    forget(forgotten: { readonly upTo: number; readonly owned: (event: Said) => boolean }): void;
    answered(signal: AbortSignal): Promise<readonly string[]>;
  };
  readonly sinks: { get(name: string): Pick<Sink, 'settle' | 'erasable'> | undefined };
  /** Events that the console shows. */
  readonly recent: { forget(owned: (whose: Ownership) => boolean): void };
  readonly clock: Clock;
  readonly noteErased: NoteErased;
}

/** Notes in the audit log the receipts of erasures that the receiver has run by itself. */
type NoteErased = (receipts: readonly string[]) => Promise<void>;

/** The erasures of a running system. Before a store is searched, no event of the subjects is in flight. */
export function runErasures(system: ErasingSystem): RunningErasures {
  const { store, journal, dispatcher, sinks, recent, noteErased, ...rest } = system;
  const abort = new AbortController();
  const options = erasuresOptions({
    ...rest,
    journal: () => Promise.resolve(journal),
    settleSink: async (name, holds) => sinks.get(name)?.settle?.(holds),
    erasable: (name) => sinks.get(name)?.erasable?.() ?? null,
    settle: async (subjects) => {
      await store.settled();
      const owners = new Owners(subjects);
      recent.forget((whose) => owners.of(whose).length > 0);
      dispatcher.forget({ upTo: store.lastSeq, owned: (event) => owners.ofEvent(event).length > 0 });
      const waiting = await dispatcher.answered(AbortSignal.timeout(SETTLE_WAIT));
      // Events that were refused in these batches are dead letters by then.
      await store.settled();
      const requests = subjects.map(({ request }) => request);
      const reason = 'has not yet answered a batch that may hold events of the user';
      return waiting.map((sink) => ({ store: 'sinks', item: sink, requests, reason }));
    },
    onProgress: (progress) => running.progressed(progress),
    signal: abort.signal,
  });
  const running = new RunningErasures(options, abort, noteErased);
  return running;
}

/** The erasures of a running receiver, which runs due requests by itself. */
export class RunningErasures extends LocalErasures {
  readonly #parts: Pick<LocalErasuresOptions, 'users' | 'clock' | 'log'>;
  readonly #abort: AbortController;
  readonly #noteErased: NoteErased;
  #cancelTimer: () => void = () => undefined;
  #checking: Promise<unknown> = Promise.resolve();
  #asking: Promise<boolean> | null = null;
  readonly #runs = new Set<Promise<unknown>>();
  #activity: Activity | null = null;
  #progress: ErasureProgress | null = null;

  constructor(options: LocalErasuresOptions, abort: AbortController, noteErased: NoteErased) {
    super(options);
    this.#parts = options;
    this.#abort = abort;
    this.#noteErased = noteErased;
  }

  /** @param delay milliseconds until the first look */
  start(delay = 1000): void {
    this.#cancelTimer = this.#parts.clock.after(delay, () => {
      this.#checking = this.#check().finally(() => {
        if (!this.#abort.signal.aborted) this.start(CHECK_EVERY);
      });
    });
  }

  override run(): Promise<ErasureResult> {
    const run = this.#shown();
    const over = run.catch(() => undefined).finally(() => this.#runs.delete(over));
    this.#runs.add(over);
    return run;
  }

  /** Runs what is due, and shows it as an activity. */
  async #shown(): Promise<ErasureResult> {
    const { clock } = this.#parts;
    const startedAt = clock.now();
    const show = (state: Activity['state'], done: number, detail: string | null): void => {
      const about = { kind: 'erasure', id: `erasure-${startedAt}`, title: 'erasing users' } as const;
      const progress = { done, total: null, unit: 'files', startedAt, updatedAt: clock.now() };
      this.#activity = { ...about, state, ...progress, detail };
    };
    show('running', 0, null);
    try {
      const result = await super.run();
      const detail = result.left[0]?.reason ?? null;
      show(detail === null ? 'done' : 'interrupted', result.files_searched, detail);
      return result;
    } catch (error) {
      show('failed', 0, messageOf(error));
      throw error;
    } finally {
      this.#progress = null;
    }
  }

  progress(): Promise<ErasureProgress | null> {
    return Promise.resolve(this.#progress);
  }

  progressed(progress: ErasureProgress): void {
    this.#progress = progress;
    const { store, stores, files, total } = progress;
    if (this.#activity === null) return;
    // Until the last store the total is not known.
    const news = {
      done: files,
      total: store === stores ? total : null,
      detail: `store ${store} of ${stores}`,
    };
    this.#activity = { ...this.#activity, ...news, updatedAt: this.#parts.clock.now() };
  }

  /** The run in progress, or the last one. */
  activities(): readonly Activity[] {
    return this.#activity === null ? [] : [this.#activity];
  }

  /** Ends a run at its next chance; the next start continues it. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    this.#abort.abort();
    await this.#checking;
    // Runs asked for over the admin API: what they clear is closed next.
    await Promise.all(this.#runs);
  }

  /** One look at a time: each that hangs takes one of the few threads that files are read with. */
  #hasDue(): Promise<boolean> {
    const ask = async (): Promise<boolean> => {
      await this.#parts.users.look();
      return this.isDue(LEFT_TO_OTHERS);
    };
    return (this.#asking ??= ask().finally(() => (this.#asking = null)));
  }

  async #check(): Promise<void> {
    const { signal } = this.#abort;
    try {
      const late = new Error('erasure.path does not answer');
      const hasDue = await within(this.#hasDue(), PATIENCE, signal, late).catch((error: unknown) => {
        if (signal.aborted) return false;
        throw error;
      });
      if (!hasDue) return;
      const { receipts } = await this.run();
      await this.#noteErased(receipts.map(({ receipt }) => receipt));
    } catch (error) {
      // Another process that shares the folder runs them.
      if (error instanceof MillraceError && error.code === 'erasure_in_use') return;
      this.#parts.log.error({ error: messageOf(error) }, 'erasure did not finish; it will be retried');
    }
  }
}
