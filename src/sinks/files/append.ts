import { randomBytes } from 'node:crypto';
import { recordPieces } from '../../core/archive-record.ts';
import type { JournalEvent } from '../../core/event.ts';
import { type Delivery, type SendResult, type SinkLog } from '../../core/sink.ts';
import { FileGone } from '../../lib/append-file.ts';
import { BufferPool } from '../../lib/buffer-pool.ts';
import { ensureFolder, errorCode, NotFollowed } from '../../lib/durable.ts';
import { sealedTypes } from '../../privacy/seal/sealer.ts';
import type { ArchiveKeys } from './archive-keys.ts';
import type { Lane, Lanes } from './lanes.ts';
import type { OpenFolder } from './writer-folders.ts';
import { Part, type BatchRecords } from './part.ts';
import type { PartAnswers } from './part-answers.ts';
import { explain } from './troubles.ts';

const CREATE_TRIES = 3;

export const ABORTED: SendResult = { status: 'retry', reason: 'stopped before it was written' };

export interface AppenderOptions {
  readonly lanes: Lanes;
  readonly folder: OpenFolder;
  readonly answers: PartAnswers;
  readonly keys: ArchiveKeys;
  readonly log: SinkLog;
  /** Makes the folder again. */
  readonly remake: () => Promise<void>;
}

/** Appends the records of one partition to its part, and makes the part when there is none. */
export class Appender {
  readonly #options: AppenderOptions;
  readonly #buffers = new BufferPool();

  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  async append(folder: string, batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult> {
    const { keys, log } = this.#options;
    const events = batch.map(({ event }) => event);
    const destination = batch[0]?.destination ?? null;
    if (!keys.isSealed) {
      const lines = recordPieces(events, (bytes) => this.#buffers.take(bytes));
      const buffer = Buffer.from((lines.at(-1) as Buffer).buffer);
      try {
        return await this.#inLane(folder, { lines, counted: events, events, destination }, signal);
      } finally {
        this.#buffers.give(buffer);
      }
    }
    try {
      // Before its turn in the lane: one batch is sealed while another is written.
      return await keys.sealer.seal(events, (lines) =>
        this.#inLane(folder, { lines, counted: sealedTypes(events), events, destination }, signal),
      );
    } catch (error) {
      log.warn({ folder, error: explain(error) }, 'records could not be sealed');
      return retryAfter(error);
    }
  }

  #inLane(folder: string, records: BatchRecords, signal: AbortSignal): Promise<SendResult> {
    const { answers, lanes, log } = this.#options;
    const lane = lanes.of(folder);
    return lanes.run(lane, async () => {
      for (let tries = 1; ; tries += 1) {
        if (signal.aborted) return ABORTED;
        try {
          const part = await this.#write(lane, records);
          return answers.of(part) ?? ABORTED;
        } catch (error) {
          const { part } = lane;
          log.warn({ folder, error: explain(error) }, 'archive file could not be written');
          if (part !== null && part.mode !== 'open') lanes.untouch(part);
          if (part === null || !(error instanceof FileGone)) return retryAfter(error);
          // Another program has deleted it; the next try makes a new part.
          await lanes.drop(lane, part);
          if (tries === CREATE_TRIES) return retryAfter(error);
        }
      }
    });
  }

  async #write(lane: Lane, records: BatchRecords): Promise<Part> {
    const { lanes } = this.#options;
    // Before the append, not after it: the last batch is then in a part, where a restart looks for it.
    if (lanes.isFull(lane)) await lanes.closePart(lane);
    const part = lane.part ?? (await this.#create(lane, records.events));
    lanes.touch(part, lane);
    await part.add(records);
    return part;
  }

  async #create(lane: Lane, events: readonly JournalEvent[]): Promise<Part> {
    const { answers, folder, lanes, remake } = this.#options;
    const stem = newStem(events);
    for (let tries = 1; ; tries += 1) {
      const { openFolder } = folder;
      const part = new Part({ openFolder, folder: lane.folder, stem }, {}, answers.care);
      try {
        await ensureFolder(openFolder, lane.folder);
        await part.create();
        lanes.assign(lane, part);
        return part;
      } catch (error) {
        // Finishing another part has removed the empty folder, or the whole archive is gone.
        if (errorCode(error) !== 'ENOENT' || tries === CREATE_TRIES) throw error;
        if (!(await folder.isThere())) await remake();
      }
    }
  }
}

/** A unique file name without extension, which begins with the time of the first record. */
export function newStem([first]: readonly Pick<JournalEvent, 'receivedAt'>[]): string {
  const received = new Date(first?.receivedAt ?? 0).toISOString().replaceAll(/[-:.]/g, '');
  return `${received}-${randomBytes(6).toString('hex')}`;
}

/** The result of events whose append failed: nothing is wrong with them. */
function retryAfter(error: unknown): SendResult {
  // One folder of the archive is a link or a file; the others can be written.
  if (error instanceof NotFollowed) return { status: 'retry', reason: error.message };
  return { status: 'retry', reason: explain(error), sink: true };
}
