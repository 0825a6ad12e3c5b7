import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import PQueue from 'p-queue';
import type { Compression } from '../../core/compression.ts';
import { messageOf } from '../../core/errors.ts';
import type { Flushed, SinkContext, SinkTrouble } from '../../core/sink.ts';
import { formatDuration } from '../../lib/units.ts';
import type { Archive, FinishStep } from './archive.ts';
import { NOT_REMOVED, type Part } from './part.ts';
import { lineOf } from './part-stats.ts';
import { codeOf, explain, waitOf } from './troubles.ts';

/** Files compressed at once. Each takes a thread of libuv's pool of four, which appends need too. */
const AT_ONCE = 2;
const RETRY_MS = 30_000;

export interface FinisherOptions {
  readonly archive: Archive;
  readonly compression: Compression;
  /** Ends all work; parts stay for the next start. */
  readonly signal: AbortSignal;
  readonly onStep: (step: FinishStep) => void;
  /** The records are in the archive. Called again when the part itself could be removed only later. */
  readonly onFinished: (part: Part) => void;
  /** The part has disappeared with its records. */
  readonly onLost: (part: Part) => Promise<void>;
}

/** A part that is not finished. */
interface Unfinished {
  /** The attempt that runs or is queued; null while the next one waits for its time. */
  attempt: Promise<Flushed> | null;
  cancelNext: () => void;
  /** Why the last attempt failed, and when the first did. */
  failure: { readonly since: number; readonly error: string; readonly code: string } | null;
}

/** Finishes closed parts in the background, and tries again later what fails, on a full disk for example. */
export class Finisher {
  readonly #context: Pick<SinkContext, 'clock' | 'log'>;
  readonly #options: FinisherOptions;
  readonly #queue = new PQueue({ concurrency: AT_ONCE });
  readonly #parts = new Map<Part, Unfinished>();

  constructor(context: Pick<SinkContext, 'clock' | 'log'>, options: FinisherOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Bytes of unfinished parts, as they lie on the disk. */
  get waiting(): number {
    let bytes = 0;
    for (const { length } of this.#parts.keys()) bytes += length;
    return bytes;
  }

  /** One trouble for all files that fail again and again. */
  troubles(): SinkTrouble[] {
    const failed = Array.from(this.#parts).filter(([, { failure }]) => failure !== null);
    const [[part, { failure }] = [null, { failure: null }]] = failed;
    if (part === null || failure === null) return [];
    const which = failed.length === 1 ? part.path : `${failed.length} files, such as ${part.path},`;
    const records = failed.reduce((sum, [{ stats }]) => sum + stats.records, 0);
    const detail = `${which} cannot be closed (${records} records; retried every ${formatDuration(RETRY_MS)}): ${failure.error}`;
    return [{ code: failure.code, detail, since: failure.since }];
  }

  /** @param part closed */
  add(part: Part): void {
    const entry = { attempt: null, cancelNext: () => undefined, failure: null };
    this.#parts.set(part, entry);
    this.#start(part, entry);
  }

  /** Tries failed parts at once. Settles when each part of now is finished or has failed. */
  async flush(): Promise<Flushed> {
    this.retry();
    const attempts = [...this.#parts.values()].flatMap(({ attempt }) => attempt ?? []);
    const all = await Promise.all(attempts);
    return { files: all.flatMap(({ files }) => files), failed: all.flatMap(({ failed }) => failed) };
  }

  /** Tries failed parts at once: the cause may be gone. */
  retry(): void {
    for (const [part, entry] of this.#parts) if (entry.attempt === null) this.#start(part, entry);
  }

  /** Tries failed parts once more, and settles when nothing is in flight. @returns how many parts are unfinished */
  async drain(): Promise<number> {
    await this.#queue.onIdle();
    this.retry();
    await this.#queue.onIdle();
    for (const { cancelNext } of this.#parts.values()) cancelNext();
    return this.#parts.size;
  }

  /**
   * Finishes the parts for which `holds` answers true.
   * @throws Error when one cannot be finished: an erasure would change its object before it is listed, and the next attempt
   * would find other bytes under the name and put all of it again
   */
  async settle(holds: (path: string) => Promise<boolean>): Promise<void> {
    await this.#queue.onIdle();
    const due: Part[] = [];
    for (const part of this.#parts.keys()) if (await holds(part.path)) due.push(part);
    for (const part of due) {
      const entry = this.#parts.get(part);
      if (entry?.attempt === null) this.#start(part, entry);
    }
    await this.#queue.onIdle();
    const left = due.find((part) => this.#parts.has(part));
    if (left === undefined) return;
    const error = this.#parts.get(left)?.failure?.error ?? 'the sink is being closed';
    throw new Error(`${left.path} cannot be closed: ${error}`);
  }

  #start(part: Part, entry: Unfinished): void {
    entry.cancelNext();
    entry.attempt = this.#queue.add(() => this.#try(part, entry));
  }

  /** Never rejects. */
  async #try(part: Part, entry: Unfinished): Promise<Flushed> {
    const { clock, log } = this.#context;
    const { archive, signal, onFinished, onLost } = this.#options;
    const { records } = part.stats;
    try {
      signal.throwIfAborted();
      // A part can outlive its finished file, and all it holds counts as delivered then.
      await part.trim();
      const file = await this.#finish(part);
      log.info({ file, records }, 'closed an archive file');
      this.#parts.delete(part);
      onFinished(part);
      await prune(part);
      return { files: [{ file: archive.nameOf(file), records }], failed: [] };
    } catch (error) {
      if (!(await part.isThere().catch(() => true))) {
        this.#parts.delete(part);
        await onLost(part);
        return { files: [], failed: [`${part.path} was removed by another program`] };
      }
      entry.attempt = null;
      if (!signal.aborted) {
        log.error({ path: part.path, error: explain(error) }, 'archive file could not be closed');
        const since = entry.failure?.since ?? clock.now();
        entry.failure = { since, error: explain(error), code: codeOf(error) };
        const wait = Math.max(RETRY_MS, waitOf(error));
        entry.cancelNext = clock.after(wait, () => this.#start(part, entry));
      }
      return { files: [], failed: [`${part.path}: ${explain(error)}`] };
    }
  }

  /** @returns its name in the archive @throws when a step fails or the signal aborts; the part is then as it was */
  async #finish(part: Part): Promise<string> {
    const { archive, signal, onStep } = this.#options;
    const compression = part.compression ?? this.#options.compression;
    onStep('closed');
    const finished = await archive.write(part, compression, signal);
    onStep('written');
    signal.throwIfAborted();
    const archived = await archive.put(part, compression, finished, signal);
    onStep('put');
    await archive.list([lineOf(archived, part.stats, part.name.stem)]);
    onStep('listed');
    await this.#end(part, archived.file);
    onStep('removed');
    return archived.file;
  }

  /** Never rejects: a listed file is finished, and the next open ends the part at the latest. @returns whether it has ended */
  async #end(part: Part, file: string): Promise<boolean> {
    const { archive } = this.#options;
    try {
      await archive.end(part);
      await archive.forget(file);
      return true;
    } catch (error) {
      this.#context.log.warn({ file, error: messageOf(error) }, NOT_REMOVED);
      this.#context.clock.after(RETRY_MS, () => void this.#endAgain(part, file));
      return false;
    }
  }

  async #endAgain(part: Part, file: string): Promise<void> {
    const { signal, onFinished } = this.#options;
    if (signal.aborted || !(await this.#end(part, file))) return;
    onFinished(part);
    await prune(part);
  }
}

/** Removes the folders a finished part has left empty; a part being made in one of them makes it again. */
async function prune(part: Part): Promise<void> {
  const { openFolder, folder } = part.name;
  const levels = folder === '' ? [] : folder.split('/');
  for (; levels.length > 0; levels.pop()) {
    try {
      await rmdir(join(openFolder, ...levels));
    } catch {
      return;
    }
  }
}
