import type { Activity } from '../../core/activity.ts';
import type { Clock } from '../../core/clock.ts';
import {
  Owners,
  type ErasureProgress,
  type ErasureRequest,
  type ErasureResult,
  type Erasures,
  type Ownership,
  type Said,
  type Subject,
} from '../../core/erasure.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { EventStore } from '../../core/journal.ts';
import type { SinkLog } from '../../core/sink.ts';
import { within } from '../../lib/abort.ts';
import type { ErasedUsers } from './erased-users.ts';
import type { LocalErasures } from './local-erasures.ts';
import { createErasures, type ErasableJournal, type ErasingParts } from './stores.ts';

/** Milliseconds between two looks at what is due. */
const CHECK_EVERY = 60_000;
/** Who asks for an erasure now runs it as well, and is told what came of it; what is left after this is the receiver's. */
const LEFT_TO_OTHERS = 10_000;
/** Longest wait for batches that are on their way when an erasure begins. */
export const SETTLE_WAIT = 30_000;
/** Milliseconds after which a folder that does not answer is in trouble. */
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
  readonly sinks: {
    settle: NonNullable<ErasingParts['settleSink']>;
    erasable: NonNullable<ErasingParts['erasable']>;
  };
  /** What the console shows of late. */
  readonly recent: { forget(owned: (whose: Ownership) => boolean): void };
  readonly clock: Clock;
  readonly noteErased: RunningParts['noteErased'];
}

/** The erasures of a running system: nothing of a user is on its way any more when a store is cleared. */
export function runErasures(system: ErasingSystem): RunningErasures {
  const { store, journal, dispatcher, sinks, recent, clock, log, noteErased, ...rest } = system;
  const abort = new AbortController();
  const local = createErasures({
    ...rest,
    clock,
    log,
    journal: () => Promise.resolve(journal),
    settleSink: (name, holds) => sinks.settle(name, holds),
    erasable: (name) => sinks.erasable(name),
    settle: async (subjects) => {
      await store.settled();
      const owners = new Owners(subjects);
      recent.forget((whose) => owners.of(whose).length > 0);
      dispatcher.forget({ upTo: store.lastSeq, owned: (event) => owners.ofEvent(event).length > 0 });
      const waiting = await dispatcher.answered(AbortSignal.timeout(SETTLE_WAIT));
      // What was refused in them is among the dead letters by then.
      await store.settled();
      const requests = subjects.map(({ request }) => request);
      const reason = 'has not yet answered a batch that may hold events of the user';
      return waiting.map((sink) => ({ store: 'sinks', item: sink, requests, reason }));
    },
    onProgress: (progress) => running.progressed(progress),
    signal: abort.signal,
  });
  const running = new RunningErasures(local, { users: rest.users, clock, log, abort, noteErased });
  return running;
}

interface RunningParts {
  /** For the audit log: receipts of what was due. */
  readonly noteErased: (receipts: readonly string[]) => Promise<void>;
  readonly users: ErasedUsers;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly abort: AbortController;
}

/** The erasures of a running receiver: performs by itself what is due, and hears of what others have performed. */
export class RunningErasures implements Erasures {
  readonly #local: LocalErasures;
  readonly #parts: RunningParts;
  #cancelTimer: () => void = () => undefined;
  #running: Promise<unknown> = Promise.resolve();
  #asking: Promise<boolean> | null = null;
  readonly #runs = new Set<Promise<unknown>>();
  #activity: Activity | null = null;
  #progress: ErasureProgress | null = null;

  constructor(local: LocalErasures, parts: RunningParts) {
    this.#local = local;
    this.#parts = parts;
  }

  /** @param delay milliseconds until the first look */
  start(delay = 1000): void {
    this.#cancelTimer = this.#parts.clock.after(delay, () => {
      this.#running = this.#check().finally(() => {
        if (!this.#parts.abort.signal.aborted) this.start(CHECK_EVERY);
      });
    });
  }

  request(subject: Omit<Subject, 'request'>, now: boolean): Promise<ErasureRequest> {
    return this.#local.request(subject, now);
  }

  cancel(subject: Omit<Subject, 'request'>): ReturnType<Erasures['cancel']> {
    return this.#local.cancel(subject);
  }

  list(): ReturnType<Erasures['list']> {
    return this.#local.list();
  }

  run(): Promise<ErasureResult> {
    const run = this.#run();
    const over = run.catch(() => undefined).finally(() => this.#runs.delete(over));
    this.#runs.add(over);
    return run;
  }

  async #run(): Promise<ErasureResult> {
    const { clock } = this.#parts;
    const startedAt = clock.now();
    const show = (state: Activity['state'], done: number, detail: string | null): void => {
      const about = { kind: 'erasure', id: `erasure-${startedAt}`, title: 'erasing users' } as const;
      const progress = { done, total: null, unit: 'files', startedAt, updatedAt: clock.now() };
      this.#activity = { ...about, state, ...progress, detail };
    };
    show('running', 0, null);
    try {
      const result = await this.#local.run();
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
    // Of the stores that come later nobody knows yet how many files they have.
    const news = {
      done: files,
      total: store === stores ? total : null,
      detail: `store ${store} of ${stores}`,
    };
    this.#activity = { ...this.#activity, ...news, updatedAt: this.#parts.clock.now() };
  }

  /** The run that is running, or the last one. */
  activities(): readonly Activity[] {
    return this.#activity === null ? [] : [this.#activity];
  }

  /** Ends a run at its next chance; the next start continues with it. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    this.#parts.abort.abort();
    await this.#running;
    // Those that were asked for over the admin API: what they clear is closed next.
    await Promise.all(this.#runs);
  }

  /** Asked once at a time: each question that hangs takes one of the few threads that files are read with. */
  #isDue(): Promise<boolean> {
    const ask = async (): Promise<boolean> => {
      await this.#parts.users.look();
      return this.#local.isDue(LEFT_TO_OTHERS);
    };
    return (this.#asking ??= ask().finally(() => (this.#asking = null)));
  }

  async #check(): Promise<void> {
    const { signal } = this.#parts.abort;
    try {
      const late = new Error('erasure.path does not answer');
      const isDue = await within(this.#isDue(), PATIENCE, signal, late).catch((error: unknown) => {
        if (signal.aborted) return false;
        throw error;
      });
      if (!isDue) return;
      const { receipts } = await this.run();
      await this.#parts.noteErased(receipts.map(({ receipt }) => receipt));
    } catch (error) {
      // Another process that shares the folder runs them.
      if (error instanceof MillraceError && error.code === 'erasure_in_use') return;
      this.#parts.log.error({ error: messageOf(error) }, 'erasure did not finish; it will be retried');
    }
  }
}
