import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import type { Clock } from '../../core/clock.ts';
import type { Flushed, SinkContext, SinkLog, SinkTrouble } from '../../core/sink.ts';
import { isMissing } from '../../lib/durable.ts';
import { formatDuration } from '../../lib/units.ts';
import type { Part } from './part.ts';
import type { Finishing, Target } from './archive.ts';
import { codeOf, explain, waitOf } from './troubles.ts';

/** Files being compressed at once; each takes a thread of libuv's pool of four, which the appends need too. */
const AT_ONCE = 2;
const RETRY_MS = 30_000;

export interface FinisherEvents {
  readonly onFinished: (part: Part) => void;
  /** The part has disappeared with all that was in it. */
  readonly onGone: (part: Part) => Promise<void>;
}

/** Finishes sealed parts in the background, and tries again later when that fails: a full disk, say. */
export class Finisher {
  readonly #clock: Clock;
  readonly #events: FinisherEvents;
  readonly #target: Target;
  readonly #log: SinkLog;
  readonly #queue = new PQueue({ concurrency: AT_ONCE });
  readonly #abort = new AbortController();
  /** Parts that failed, each with what cancels its next try. */
  readonly #failed = new Map<Part, () => void>();
  /** When each of those first failed that are not finished since, and why they last did. */
  readonly #troubled = new Map<
    Part,
    { readonly since: number; readonly error: string; readonly code: string }
  >();
  /** Parts that are being finished or wait for their turn, each with what becomes of it. */
  readonly #underWay = new Map<Part, Promise<Flushed>>();

  constructor(target: Target, { clock, log }: Pick<SinkContext, 'clock' | 'log'>, events: FinisherEvents) {
    this.#target = target;
    this.#clock = clock;
    this.#log = log;
    this.#events = events;
  }

  /** Bytes of parts that are not finished, as they lie on the disk. */
  get waiting(): number {
    let bytes = 0;
    for (const { length } of new Set([...this.#underWay.keys(), ...this.#failed.keys()])) bytes += length;
    return bytes;
  }

  /** Files that fail again and again. */
  troubles(): SinkTrouble[] {
    const all = [...this.#troubled];
    const [[part, { since, error, code }] = [null, { since: 0, error: '', code: '' }]] = all;
    if (part === null) return [];
    const which = all.length === 1 ? part.path : `${all.length} files, such as ${part.path},`;
    const records = all.reduce((sum, [{ stats }]) => sum + stats.records, 0);
    const detail = `${which} cannot be closed (${records} records; retried every ${formatDuration(RETRY_MS)}): ${error}`;
    return [{ code, detail, since }];
  }

  /** @param part sealed */
  add(part: Part): void {
    // Never rejects: a failure is kept for the next try.
    const work = this.#queue
      .add(() => this.#try(part))
      .finally(() => {
        if (this.#underWay.get(part) === work) this.#underWay.delete(part);
      });
    this.#underWay.set(part, work);
  }

  /** Tries at once what failed, and settles when all that is sealed now is finished or has failed. */
  async flush(): Promise<Flushed> {
    this.retry();
    const all = await Promise.all(this.#underWay.values());
    return { files: all.flatMap(({ files }) => files), failed: all.flatMap(({ failed }) => failed) };
  }

  /** Tries at once what failed: its cause may be gone. */
  retry(): void {
    for (const [part, cancel] of this.#failed) {
      cancel();
      this.#failed.delete(part);
      this.add(part);
    }
  }

  /** Tries once more what failed, and settles when nothing is in flight. Returns the parts left unfinished. */
  async drain(): Promise<number> {
    await this.#queue.onIdle();
    this.retry();
    await this.#queue.onIdle();
    for (const cancel of this.#failed.values()) cancel();
    return this.#failed.size;
  }

  /**
   * Settles when nothing is in flight of which `holds` answers true. Files of that kind that failed are tried at once.
   * @throws when one cannot be finished: an erasure would take out of a store what is not listed there yet, and the next try
   * would find other bytes under the name and put all of it again
   */
  async settle(holds: (path: string) => Promise<boolean>): Promise<void> {
    await this.#queue.onIdle();
    const due: Part[] = [];
    for (const part of this.#failed.keys()) if (await holds(part.path)) due.push(part);
    for (const part of due) {
      this.#failed.get(part)?.();
      if (this.#failed.delete(part)) this.add(part);
    }
    await this.#queue.onIdle();
    const left = due.find((part) => this.#failed.has(part));
    if (left === undefined) return;
    const error = this.#troubled.get(left)?.error ?? 'the sink is being closed';
    throw new Error(`${left.path} cannot be closed: ${error}`);
  }

  /** Stops at the next chance; parts stay for the next start. */
  abort(): void {
    this.#abort.abort();
  }

  async #try(part: Part): Promise<Flushed> {
    const { signal } = this.#abort;
    try {
      signal.throwIfAborted();
      // A part can outlive its finished file, and all it holds counts as delivered then.
      await part.trim();
      const name = await this.#target.finish(part, { signal, onLeft: this.#removeLater });
      this.#log.info({ file: name, records: part.stats.records }, 'closed an archive file');
      this.#troubled.delete(part);
      this.#events.onFinished(part);
      await prune(part);
      return { files: [{ file: this.#target.nameOf(name), records: part.stats.records }], failed: [] };
    } catch (error) {
      if (!(await part.isThere().catch(() => true))) {
        this.#troubled.delete(part);
        await this.#events.onGone(part);
        return { files: [], failed: [`${part.path} was removed by another program`] };
      }
      if (!signal.aborted) {
        this.#log.error({ path: part.path, error: explain(error) }, 'archive file could not be closed');
        const since = this.#troubled.get(part)?.since ?? this.#clock.now();
        this.#troubled.set(part, { since, error: explain(error), code: codeOf(error) });
      }
      const cancel = signal.aborted
        ? () => undefined
        : this.#clock.after(Math.max(RETRY_MS, waitOf(error)), () => this.#retry(part));
      this.#failed.set(part, cancel);
      return { files: [], failed: [`${part.path}: ${explain(error)}`] };
    }
  }

  /** A part whose records are in a finished file: only its bytes are in the way. */
  readonly #removeLater: Finishing['onLeft'] = (part, remove) => {
    this.#clock.after(RETRY_MS, () => {
      if (this.#abort.signal.aborted) return;
      remove().then(
        () => prune(part),
        (error: unknown) => (isMissing(error) ? undefined : this.#removeLater(part, remove)),
      );
    });
  };

  #retry(part: Part): void {
    this.#failed.delete(part);
    this.add(part);
  }
}

/** Removes the folders a finished part has left empty; a part being made in one of them makes it again. */
async function prune(part: Part): Promise<void> {
  const { openFolder, folder } = part.place;
  const levels = folder === '' ? [] : folder.split('/');
  for (; levels.length > 0; levels.pop()) {
    try {
      await rmdir(join(openFolder, ...levels));
    } catch {
      return;
    }
  }
}
