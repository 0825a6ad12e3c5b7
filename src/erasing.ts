import { resolve } from 'node:path';
import type { Config } from './config/config.ts';
import type { Activity } from './core/activity.ts';
import { systemClock, type Clock } from './core/clock.ts';
import {
  Owners,
  type ErasableStore,
  type ErasureRequest,
  type ErasureResult,
  type Erasures,
  type LeftItem,
  type Subject,
} from './core/erasure.ts';
import { messageOf } from './core/errors.ts';
import type { KeyLedger, OpenProof } from './core/proof.ts';
import type { SinkLog } from './core/sink.ts';
import type { Dispatcher } from './deliver/dispatcher.ts';
import { ErasedUsers } from './erase/erased-users.ts';
import { FolderStore } from './erase/folder-store.ts';
import { LocalErasures } from './erase/local-erasures.ts';
import type { Intake } from './intake.ts';
import type { SqliteJournal } from './journal/sqlite-journal.ts';
import type { LiveSinks } from './live-sinks.ts';
import type { RecentEvents } from './metrics/recent.ts';
import { KeyErasure } from './seal/key-erasure.ts';
import { parseMasterKey } from './seal/master-key.ts';

/** What an erasure needs of the system around it; a command that works alone has a journal at most. */
export interface ErasingParts {
  readonly config: () => Config;
  readonly users: ErasedUsers;
  /** Asked for when there is something to erase: null when there is none, or none yet. */
  readonly journal: () => Promise<SqliteJournal | null>;
  /** What a sink that is open here has to clear beside its files, such as the keys of sealed records. */
  readonly erasable?: (sink: string) => ErasableStore | null;
  readonly settleSink?: (name: string, holds: (path: string) => Promise<boolean>) => Promise<void>;
  readonly settle?: (subjects: readonly Subject[]) => Promise<readonly LeftItem[]>;
  readonly proof: OpenProof;
  readonly clock?: Clock;
  readonly onProgress?: (files: number, bytes: number) => void;
  readonly log: SinkLog;
  readonly signal: AbortSignal;
}

/** Erasures over everything the config knows of: the journal, the folders of sinks, `erasure.folders`. */
export function createErasures(parts: ErasingParts): LocalErasures {
  const { config, users, journal, settle, clock = systemClock, log, signal } = parts;
  const { path: folder, grace } = config().erasure;
  return new LocalErasures({
    folder,
    grace,
    users,
    // Folders last: what is still on its way to one has come to rest by then. Keys first: a crash after them leaves nothing to read.
    stores: async () => {
      const kept = await journal();
      return [...keyStores(parts), ...(kept === null ? [] : [kept]), ...folderStores(parts)];
    },
    ...(settle === undefined ? {} : { settle }),
    ...(parts.onProgress === undefined ? {} : { onProgress: parts.onProgress }),
    proof: parts.proof,
    closed: async (subjects) => (await journal())?.erased(subjects),
    clock,
    log,
    signal,
  });
}

/** The keys of sealed archives: of the sink that has them open, else of the store as it lies there. */
function keyStores({ config, erasable, proof }: ErasingParts): ErasableStore[] {
  const ledger = async (): Promise<KeyLedger> => (await proof()).ledger;
  return Object.entries(config().sinks).flatMap(([name, { type, options }]) => {
    const { encrypt } = options;
    if (type !== 'files' || typeof encrypt !== 'object' || encrypt === null) return [];
    const { store, masterKey } = encrypt as { readonly store?: unknown; readonly masterKey?: unknown };
    return (
      erasable?.(name) ?? KeyErasure.at(name, String(store), () => parseMasterKey(String(masterKey)), ledger)
    );
  });
}

/** Types of sinks that keep data of users under their `path`. */
const KEEPERS: ReadonlySet<string> = new Set(['files', 'follow-up']);

function folderStores({ config, settleSink, log, proof }: ErasingParts): FolderStore[] {
  const { sinks, erasure, journal, envelope } = config();
  const { team, user, clientUser } = envelope;
  const found = new Map<string, { name: string; sinks: string[] }>();
  for (const [name, { type, options }] of Object.entries(sinks)) {
    if (!KEEPERS.has(type) || typeof options['path'] !== 'string') continue;
    const path = resolve(options['path']);
    const known = found.get(path);
    if (known === undefined) found.set(path, { name: options['path'], sinks: [name] });
    else known.sinks.push(name);
  }
  for (const path of erasure.folders) {
    if (!found.has(resolve(path))) found.set(resolve(path), { name: path, sinks: [] });
  }
  // A folder inside another is a store of its own; and the journal's file is only to be touched by who holds its lock.
  const exclude = [resolve(journal.path), resolve(erasure.path), ...found.keys()];
  return Array.from(found, ([path, { name, sinks: writers }]) => {
    return new FolderStore({
      name,
      path,
      exclude: exclude.filter((other) => other !== path),
      fields: { team, user, clientUser },
      log,
      proof,
      settle: async (holds) => {
        for (const writer of writers) await settleSink?.(writer, holds);
      },
    });
  });
}

/** Milliseconds between two looks at what is due. */
const CHECK_EVERY = 60_000;
/** Longest wait for batches that are on their way when an erasure begins. */
const SETTLE_WAIT = 30_000;

/** The erasures of a running system: nothing of a user is on its way any more when a store is cleared. */
export function runErasures(system: {
  readonly config: () => Config;
  readonly users: ErasedUsers;
  readonly intake: Pick<Intake, 'settled' | 'lastSeq' | 'erasable'>;
  readonly dispatcher: Dispatcher;
  readonly sinks: LiveSinks;
  readonly proof: OpenProof;
  /** What the console shows of late. */
  readonly recent: Pick<RecentEvents, 'forget'>;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly noteErased: RunningParts['noteErased'];
}): RunningErasures {
  const { intake, dispatcher, sinks, recent, clock, log, noteErased, ...rest } = system;
  const abort = new AbortController();
  const local = createErasures({
    ...rest,
    clock,
    log,
    journal: () => Promise.resolve(intake.erasable),
    settleSink: (name, holds) => sinks.settle(name, holds),
    erasable: (name) => sinks.erasable(name),
    settle: async (subjects) => {
      await intake.settled();
      const owners = new Owners(subjects);
      recent.forget((whose) => owners.of(whose).length > 0);
      dispatcher.forget({ upTo: intake.lastSeq(), owned: (event) => owners.ofEvent(event).length > 0 });
      const waiting = await dispatcher.answered(AbortSignal.timeout(SETTLE_WAIT));
      const requests = subjects.map(({ request }) => request);
      const reason = 'has not answered yet to a batch that may hold events of the user';
      return waiting.map((sink) => ({ store: 'sinks', item: sink, requests, reason }));
    },
    onProgress: (files) => running.progressed(files),
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
  readonly #runs = new Set<Promise<void>>();
  #activity: Activity | null = null;

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
    const over = run.then(
      () => undefined,
      () => undefined,
    );
    this.#runs.add(over);
    void over.then(() => this.#runs.delete(over));
    return run;
  }

  async #run(): Promise<ErasureResult> {
    const { clock } = this.#parts;
    const startedAt = clock.now();
    const base = {
      kind: 'erasure',
      id: `erasure-${startedAt}`,
      title: 'erasing users',
      total: null,
      unit: 'files',
    } as const;
    this.#activity = { ...base, state: 'running', done: 0, startedAt, updatedAt: startedAt, detail: null };
    try {
      const result = await this.#local.run();
      const detail = result.left[0]?.reason ?? null;
      const state = detail === null ? 'done' : 'interrupted';
      this.#activity = {
        ...base,
        state,
        done: result.files_searched,
        startedAt,
        updatedAt: clock.now(),
        detail,
      };
      return result;
    } catch (error) {
      this.#activity = {
        ...base,
        state: 'failed',
        done: 0,
        startedAt,
        updatedAt: clock.now(),
        detail: messageOf(error),
      };
      throw error;
    }
  }

  progressed(files: number): void {
    if (this.#activity === null) return;
    this.#activity = { ...this.#activity, done: files, updatedAt: this.#parts.clock.now() };
  }

  /** The run under way, or the last one. */
  activities(): readonly Activity[] {
    return this.#activity === null ? [] : [this.#activity];
  }

  /** Ends a run at its next chance; the next start goes on with it. */
  async stop(): Promise<void> {
    this.#cancelTimer();
    this.#parts.abort.abort();
    await this.#running;
    // Those that were asked for over the admin API: what they clear is closed next.
    await Promise.all(this.#runs);
  }

  async #check(): Promise<void> {
    try {
      this.#parts.users.reload();
      if (!this.#local.isDue()) return;
      const { receipts } = await this.run();
      await this.#parts.noteErased(receipts.map(({ receipt }) => receipt));
    } catch (error) {
      this.#parts.log.error(
        { error: messageOf(error) },
        'erasure did not come to its end; it is tried again',
      );
    }
  }
}
