import { Worker } from 'node:worker_threads';
import { writeArchiveFile } from '../../archive/write-file.ts';
import type { Compression } from '../../core/compression.ts';
import { onAbort } from '../../lib/abort.ts';
import { readPlain } from '../../lib/durable.ts';
import { threadProgram } from '../../lib/thread-pool.ts';
import type { FinishedFile } from './archive.ts';
import type { Part } from './part.ts';

/** Size and hash of a finished file. */
type Written = Omit<FinishedFile, 'path'>;

/** The members of a part that a thread needs. */
export interface CompressJob extends Pick<Part, 'path' | 'length' | 'temporaryPath'> {
  readonly compression: Compression;
}

export type CompressAnswer =
  | { readonly ok: true; readonly written: Written }
  /** A system error loses its code between threads. */
  | { readonly ok: false; readonly message: string; readonly code: string };

/** Bytes above which a thread saves more than it costs to start. */
const LARGE = 4 * 2 ** 20;
/** Memory for short-lived objects of the thread. */
const YOUNG_MB = 16;

/**
 * Writes the finished file of a part under its temporary name; it is on disk once this resolves, and not there when it
 * rejects. A large one is written in a thread: each 16 MiB take 20 ms of it, in which no delivery could be answered.
 */
export async function compress(
  { path, length, temporaryPath }: Part,
  compression: Compression,
  signal: AbortSignal,
): Promise<Written> {
  const job: CompressJob = { path, length, temporaryPath, compression };
  if (length < LARGE) return writeFinished(job, signal);
  signal.throwIfAborted();
  const thread = idle.pop() ?? new CompressThread();
  const forget = onAbort(signal, () => thread.stop());
  try {
    const answer = await thread.run(job);
    if (answer.ok) return answer.written;
    throw Object.assign(new Error(answer.message), { code: answer.code });
  } finally {
    forget();
  }
}

/** Milliseconds after which an idle thread ends; to start one takes as long as compressing 10 MB. */
const IDLE_MS = 20_000;
/** Idle threads; they do not keep the process alive. */
const idle: CompressThread[] = [];

/** Modes: busy (by `run`) and idle in turn; either → ended, when it dies or was idle too long. */
class CompressThread {
  readonly #worker: Worker;
  #waiting: PromiseWithResolvers<CompressAnswer> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.#worker = new Worker(threadProgram('compress-thread', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    this.#worker.on('message', (answer: CompressAnswer) => this.#answered(answer));
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', () => this.#end(new Error('the thread that compresses has ended')));
  }

  run(job: CompressJob): Promise<CompressAnswer> {
    clearTimeout(this.#timer);
    this.#worker.ref();
    this.#waiting = Promise.withResolvers();
    this.#worker.postMessage(job, []);
    return this.#waiting.promise;
  }

  /** Aborts the running job. */
  stop(): void {
    this.#worker.postMessage('stop', []);
  }

  #answered(answer: CompressAnswer): void {
    this.#worker.unref();
    idle.push(this);
    this.#timer = setTimeout(() => this.#end(new Error('the thread was idle')), IDLE_MS).unref();
    this.#waiting?.resolve(answer);
  }

  #end(why: unknown): void {
    clearTimeout(this.#timer);
    const at = idle.indexOf(this);
    if (at !== -1) idle.splice(at, 1);
    this.#waiting?.reject(why);
    void this.#worker.terminate();
  }
}

export function writeFinished(job: CompressJob, signal: AbortSignal): Promise<Written> {
  return writeArchiveFile(job.temporaryPath, () => recordsOf(job), job.compression, signal);
}

/** The records of a part. Bytes beyond its length were never acknowledged. */
export async function* recordsOf(part: Pick<Part, 'path' | 'length'>): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const chunk of readPlain(part.path, part.length)) {
    read += chunk.length;
    yield chunk;
  }
  if (read < part.length) throw new Error(`${part.path} has shrunk from ${part.length} to ${read} bytes`);
}
