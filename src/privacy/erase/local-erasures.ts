import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import {
  leftItemOf,
  type CancelResult,
  type ErasableStore,
  type ErasureProgress,
  type ErasureReceipt,
  type ErasureRequest,
  type ErasureRun,
  type ErasureResult,
  type Erasures,
  type LeftItem,
  type Subject,
} from '../../core/erasure.ts';
import { MillraceError } from '../../core/errors.ts';
import { IdSearch } from './id-search.ts';
import type { OpenProof } from '../../core/proof.ts';
import type { SinkLog } from '../../core/sink.ts';
import { makeFolder } from '../../lib/durable.ts';
import { own } from '../../lib/file-lock.ts';
import { Serial } from '../../lib/serial.ts';
import { NOTICED_WITHIN, type ErasedUsers } from './erased-users.ts';
import { untilFollowed } from './followers.ts';
import { ProgressLog } from './progress.ts';
import { receiptOf, writeReceipt } from './receipt.ts';
import { Requests } from './requests.ts';

export interface LocalErasuresOptions {
  /** The erasure folder. */
  readonly folder: string;
  /** Milliseconds between a request and its run. */
  readonly grace: number;
  readonly users: ErasedUsers;
  /** True when other processes may follow the list of erased users. */
  readonly followers?: boolean;
  /** Called once something is due, before anything has begun. */
  readonly stores: () => Promise<readonly ErasableStore[]>;
  /** Names of the sinks whose data no erasure reaches. */
  readonly beyond?: () => readonly string[];
  /** Waits until no event of the subjects is in flight. @returns what it could not wait for */
  readonly settle?: ((subjects: readonly Subject[]) => Promise<readonly LeftItem[]>) | undefined;
  /** Has the journal forget events that a store removes, and, once all stores have, remove what it noted for that. */
  readonly forget?: ErasureRun['forget'];
  readonly forgotten?: (signal: AbortSignal) => Promise<void>;
  /** Called once the receipts are written: stores remove what they noted for them. */
  readonly closed?: (subjects: readonly Subject[]) => Promise<void>;
  /** Signs receipts. */
  readonly proof: OpenProof;
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly signal: AbortSignal;
  /** Called after each file. */
  readonly onProgress?: ((progress: ErasureProgress) => void) | undefined;
  readonly onStep?: (step: string) => void;
}

/**
 * Erasures from the folders of this machine. A request is `waiting` (its file has the id; cancelling removes the file) →
 * `begun` (the user's events are dropped, and stores are searched; it cannot be cancelled, and every run continues it) → done
 * (it has a receipt, and the id is nowhere).
 */
export class LocalErasures implements Erasures {
  readonly #options: LocalErasuresOptions;
  readonly #requests: Requests;
  readonly #serial = new Serial();

  constructor(options: LocalErasuresOptions) {
    this.#options = options;
    this.#requests = new Requests(options.folder);
  }

  request(subject: Omit<Subject, 'request'>, now: boolean): Promise<ErasureRequest> {
    const { clock, grace } = this.#options;
    return this.#exclusively(async () => {
      const known = this.#requests.find(subject);
      const wait = now ? 0 : grace;
      if (known === null) return this.#requests.add(subject, clock.now(), wait);
      if (!now || Date.parse(known.due_at) <= clock.now()) return known;
      const sooner = { ...known, due_at: this.#now() };
      await this.#requests.save(sooner);
      return sooner;
    });
  }

  cancel(subject: Omit<Subject, 'request'>): Promise<CancelResult> {
    const { users } = this.#options;
    return this.#exclusively(async () => {
      const known = this.#requests.find(subject);
      if (known !== null && known.begun_at !== null)
        throw new MillraceError('erasure_begun', `request ${known.request}; --run continues it`);
      if (known !== null) {
        await this.#requests.remove(known);
        return { status: 'cancelled', request: known.request };
      }
      users.reload();
      return { status: (await users.lift(subject, this.#now())) ? 'lifted' : 'unknown' };
    });
  }

  list(): ReturnType<Erasures['list']> {
    this.#options.users.reload();
    return Promise.resolve({ waiting: this.#requests.list(), erased: this.#options.users.list() });
  }

  /** Whether a request has been due for so many milliseconds, or has begun. */
  async isDue(since: number): Promise<boolean> {
    return (await this.#requests.areAny()) && this.#due(this.#options.clock.now() - since).length > 0;
  }

  run(): Promise<ErasureResult> {
    return this.#exclusively(() => this.#run());
  }

  #due(at: number): ErasureRequest[] {
    return this.#requests
      .list()
      .filter(({ due_at: due, begun_at: begun }) => begun !== null || Date.parse(due) <= at);
  }

  async #run(): Promise<ErasureResult> {
    const { folder, users, clock, log, settle, closed, followers = false } = this.#options;
    const { onStep = () => undefined } = this.#options;
    const due = this.#due(clock.now());
    if (due.length === 0) return { receipts: [], left: [], files_searched: 0, bytes_searched: 0 };
    const stores = await this.#options.stores();
    const subjects: ErasureRequest[] = [];
    for (const request of due) subjects.push(await this.#begin(request));
    onStep('begun');
    users.reload();
    for (const subject of subjects) await users.block(subject, this.#now());
    onStep('blocked');
    const search = new IdSearch(subjects);
    const left: LeftItem[] = [];
    // Reported without ids: items and reasons are logged, and stand on receipts.
    const leave = (one: LeftItem): void =>
      void left.push({ ...one, item: search.redact(one.item), reason: search.redact(one.reason) });
    if (followers) for (const one of await this.#followed(subjects)) leave(one);
    for (const one of (await settle?.(subjects)) ?? []) leave(one);
    const progress = new ProgressLog(folder);
    const searched = await this.#search(stores, subjects, progress, leave);
    onStep('erased');
    for (const { store, item, requests, reason } of left)
      log.warn({ store, item, reason }, requests.length === 0 ? 'not searched' : 'not erased');
    const done = subjects.filter(({ request }) => !left.some(({ requests }) => requests.includes(request)));
    if (done.length < subjects.length) await progress.redact(new IdSearch(done));
    // The progress keeps the names: the next run finds files by them.
    const items = progress.items.map((one) => ({ ...one, item: search.redact(one.item) }));
    const receipts: ErasureReceipt[] = [];
    for (const request of done) {
      const { signer, logHead } = await this.#options.proof();
      const unsigned = receiptOf(request, {
        hash: users.hashOf(request),
        items,
        stores: stores.map(({ name }) => name),
        notSearched: left.flatMap(({ requests, item }) => (requests.length === 0 ? [item] : [])),
        notReached: this.#options.beyond?.() ?? [],
        finishedAt: clock.now(),
        log: logHead(),
      });
      const receipt = await writeReceipt(folder, unsigned, signer);
      onStep('receipted');
      await this.#requests.remove(request);
      receipts.push(receipt);
      log.info({ receipt: receipt.receipt, records: receipt.records_removed }, 'erasure done');
    }
    await closed?.(done);
    if (done.length === subjects.length) await progress.clear();
    onStep('closed');
    return { receipts, left, ...searched };
  }

  /** Waits until no other process has events of the subjects in flight. @returns the processes that still may */
  async #followed(subjects: readonly ErasureRequest[]): Promise<readonly LeftItem[]> {
    const { folder, users, signal } = this.#options;
    // For processes without a lock in the folder, and those that have just started.
    await sleep(NOTICED_WITHIN, undefined, { signal });
    const requests = subjects.map(({ request }) => request);
    const reason = 'has not yet said that nothing of the user is on its way there';
    const behind = await untilFollowed(folder, users, signal);
    return behind.map((item) => ({ store: 'fleet', item, requests, reason }));
  }

  /** Has each store erase the subjects. @returns how much was searched */
  async #search(
    stores: readonly ErasableStore[],
    subjects: readonly ErasureRequest[],
    progress: ProgressLog,
    leave: (item: LeftItem) => void,
  ): Promise<Pick<ErasureResult, 'files_searched' | 'bytes_searched'>> {
    const { onProgress, onStep = () => undefined, signal, forget, forgotten } = this.#options;
    let files = 0;
    let bytes = 0;
    let total = 0;
    for (const [index, store] of stores.entries()) {
      const show = (): void => onProgress?.({ store: index + 1, stores: stores.length, files, total, bytes });
      const run: ErasureRun = {
        subjects,
        signal,
        recorded: progress.items,
        record: (item) => progress.add(item),
        leave,
        ...(forget === undefined ? {} : { forget }),
        expected: (count) => {
          total += count;
          show();
        },
        searched: (count) => {
          files += 1;
          bytes += count;
          // Files of Delta tables are not expected.
          total = Math.max(total, files);
          show();
        },
        onStep,
      };
      try {
        await store.erase(run);
      } catch (error) {
        if (signal.aborted) throw interruptedBy(error);
        leave(leftItemOf(store.name, '', subjects, error));
      }
    }
    await forgotten?.(signal).catch((error: unknown) => {
      throw signal.aborted ? interruptedBy(error) : error;
    });
    return { files_searched: files, bytes_searched: bytes };
  }

  async #begin(request: ErasureRequest): Promise<ErasureRequest> {
    if (request.begun_at !== null) return request;
    const begun = { ...request, begun_at: this.#now() };
    await this.#requests.save(begun);
    return begun;
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString();
  }

  /** One at a time, in this process and among others. @throws MillraceError erasure_in_use */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#serial.run(async () => {
      const { folder } = this.#options;
      makeFolder(folder, 0o700);
      const refusal = (by: string) => new MillraceError('erasure_in_use', `${folder} is used by ${by}`);
      const lock = await own(join(folder, 'lock'), refusal);
      try {
        await this.#requests.clear();
        return await work();
      } finally {
        lock.release();
      }
    });
  }
}

function interruptedBy(cause: unknown): MillraceError {
  return new MillraceError('interrupted', 'the next run continues it', { cause });
}
