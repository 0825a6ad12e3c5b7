import { randomFillSync, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { ENTRY_BYTES, LOG_OFFSET, SALT_BYTES, type ReceiptLog } from '../../core/receipt.ts';
import type { ReceiptsStatus } from '../../core/operations.ts';
import type { SinkLog } from '../../core/sink.ts';
import type { CheckpointStore } from '../../core/source.ts';
import { makeFolder, syncFound } from '../../lib/durable.ts';
import { own, type FileLock } from '../../lib/file-lock.ts';
import { writeOnce } from '../../lib/new-file.ts';
import { Serial } from '../../lib/serial.ts';
import { ThreadPool, threadProgram } from '../../lib/thread-pool.ts';
import { IDENTITY, LogReader } from './log-reader.ts';
import type { Done, Job, LogDocument, Opening } from './job.ts';

/** What the log needs of the journal. */
export interface ReceiptSource {
  readonly lastSeq: number;
  readonly checkpoints: CheckpointStore;
  readonly receipts: {
    entries(
      after: number,
      count: number,
    ): Promise<{ readonly firstSeq: number; readonly records: Uint8Array }>;
    log(): Promise<ReceiptLog | null>;
    hold(log: ReceiptLog): Promise<void>;
  };
}

export interface ReceiptsOptions extends Opening {
  readonly journal: ReceiptSource;
  readonly clock: Clock;
  readonly log: SinkLog;
  /** Milliseconds between two checkpoints. */
  readonly interval: number;
}

/** Entries asked of the journal at once, at most: it gives fewer when it has to read them. */
const PAGE = 8192;
/** Salts made at once. */
const SALTS = 1024;

/**
 * The log of receipts of a running receiver. Its entries are the journal's events in their order: entry = seq + offset. A
 * commit of the journal writes nothing to it, and entries that a crash has kept from it are read from the journal again.
 *
 * Modes: running ⇄ behind (the log cannot be written; deliveries are answered without receipts, and it is retried); either →
 * stopped. `#enter` changes between the first two.
 */
export class Receipts {
  readonly #options: ReceiptsOptions;
  readonly #thread: ThreadPool<Job, Done>;
  readonly #serial = new Serial();
  readonly #salts = Buffer.alloc(SALTS * SALT_BYTES);
  #saltsLeft = 0;
  #offset = 0;
  /** Id of the log. */
  #id = '';
  /** Entries in the log, and those of them that are signed. */
  #size = 0;
  #signed = 0;
  /** When it fell behind, milliseconds since the epoch; null while it runs. */
  #behindSince: number | null = null;
  #lock: FileLock | null = null;
  #isStopped = false;
  #stopTimer: () => void = () => undefined;

  /** @throws MillraceError receipts_unusable, receipts_in_use */
  static async open(options: ReceiptsOptions): Promise<Receipts> {
    const receipts = new Receipts(options);
    try {
      await receipts.#open();
      return receipts;
    } catch (error) {
      await receipts.#close();
      if (error instanceof MillraceError) throw error;
      throw new MillraceError('receipts_unusable', `${options.folder}: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  private constructor(options: ReceiptsOptions) {
    this.#options = options;
    const { folder, origin, pem } = options;
    const url = threadProgram('log-thread', import.meta.url);
    this.#thread = new ThreadPool(url, { folder, origin, pem } satisfies Opening, 1);
  }

  /** The salt of a new event: 22 digits of base64url. */
  newSalt(): string {
    if (this.#saltsLeft === 0) {
      randomFillSync(this.#salts);
      this.#saltsLeft = SALTS;
    }
    this.#saltsLeft -= 1;
    const at = this.#saltsLeft * SALT_BYTES;
    return this.#salts.toString('base64url', at, at + SALT_BYTES);
  }

  /**
   * The receipt in the answer to a delivery: a dictionary of structured fields (RFC 9651). Undefined while the log is behind:
   * its repair may need a new log, with other numbers.
   */
  header(seq: number, salt: string, receivedAt: number): string | undefined {
    if (this.#behindSince !== null) return undefined;
    return `log="${this.#options.origin}", leaf=${seq + this.#offset}, salt="${salt}", received=${receivedAt}`;
  }

  /**
   * A document of the log, found in the log's thread: receiving does not wait for readers.
   * @param path `checkpoint`, `key`, `tile/…`, or the number of an entry, for its proof
   */
  async find(path: string): Promise<LogDocument | null> {
    const { found = null } = await this.#thread.run({ kind: 'find', path });
    return found;
  }

  /** Resolves once the log has all events that the journal has now, and is signed. @throws MillraceError receipts_behind */
  cover(): Promise<void> {
    const upTo = this.#options.journal.lastSeq;
    return this.#serial.run(async () => {
      try {
        await this.#append(upTo);
        this.#enter(null);
      } catch (error) {
        this.#enter(error);
        throw new MillraceError('receipts_behind', messageOf(error), { cause: error });
      }
    });
  }

  status(): ReceiptsStatus {
    const { journal, origin } = this.#options;
    const waiting = Math.max(0, journal.lastSeq - (this.#signed - this.#offset - 1));
    return { origin, entries: this.#signed, waiting, behindSince: this.#behindSince };
  }

  /** @param error why the log could not be written; null when it was */
  #enter(error: unknown): void {
    const { log, folder, clock } = this.#options;
    const wasBehind = this.#behindSince !== null;
    if (error === null && wasBehind)
      log.info({ folder, entries: this.#size }, 'the log of receipts has all events again');
    if (error !== null && !wasBehind)
      log.error(
        { err: error, folder },
        'the log of receipts cannot be written: until it can, deliveries are answered without receipts, and the journal keeps their events for the log',
      );
    this.#behindSince = error === null ? null : (this.#behindSince ?? clock.now());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer();
    await this.cover().catch(() => undefined);
    await this.#close();
  }

  async #close(): Promise<void> {
    await this.#thread.close();
    this.#lock?.release();
  }

  async #open(): Promise<void> {
    const { folder, origin, journal, log } = this.#options;
    makeFolder(folder, 0o700);
    this.#lock = await own(
      join(folder, 'lock'),
      (owner) => new MillraceError('receipts_in_use', `${folder} is used by ${owner}`),
    );
    const { size, hasMadeHashes } = await this.#thread.run({ kind: 'open' });
    this.#size = size;
    if (hasMadeHashes === true)
      log.warn(
        { folder },
        'the hashes of the log of receipts were damaged; they were made again from its entries, which are as they were signed',
      );
    this.#id = await identityOf(folder);
    const noted = await journal.receipts.log();
    // A second log under the name of the first would contradict the receipts of the first.
    if (noted !== null && noted.id !== this.#id && noted.origin === origin)
      throw new Error(
        `is not the log ${origin} that the journal's events were entered in: it was removed or replaced. ` +
          'Restore it; or begin a new log, with another receipts.origin',
      );
    const key = LOG_OFFSET + this.#id;
    const known = await journal.checkpoints.load(key);
    this.#offset = known === null ? size - journal.lastSeq - 1 : Number(known);
    if (known === null) await journal.checkpoints.save(key, String(this.#offset));
    if (noted?.id === this.#id && this.#covered < noted.seq)
      throw new Error(
        `has ${size} entries, and had ${noted.seq + this.#offset + 1}: it is an older copy, or a part of it is gone. ` +
          'Restore it; or begin a new log, with another receipts.origin and another folder',
      );
    if (this.#covered > journal.lastSeq)
      throw new Error(`has ${size} entries, and the journal fewer events: it is not the journal it was`);
    this.#signed = size;
    await this.#noteSigned();
    this.#coverLater();
  }

  #coverLater(): void {
    if (this.#isStopped) return;
    const { clock, interval } = this.#options;
    this.#stopTimer = clock.after(interval, () => {
      void this.cover()
        .catch(() => undefined)
        .finally(() => this.#coverLater());
    });
  }

  /** The newest seq that has an entry. */
  get #covered(): number {
    return this.#size - this.#offset - 1;
  }

  /** Notes in the journal what is signed, so that an older copy of the log is noticed. */
  #noteSigned(): Promise<void> {
    const { journal, origin } = this.#options;
    return journal.receipts.hold({ id: this.#id, origin, seq: this.#covered });
  }

  async #append(upTo: number): Promise<void> {
    const { journal } = this.#options;
    // Opened again: what was not signed has been cut off.
    if (this.#behindSince !== null) {
      const before = { id: this.#id, signed: this.#signed };
      this.#size = (await this.#thread.run({ kind: 'open', before })).size;
    }
    while (this.#covered < upTo) {
      const { firstSeq, records } = await journal.receipts.entries(this.#covered, PAGE);
      if (firstSeq !== this.#covered + 1 || records.length === 0)
        throw new Error(`the journal has no event ${this.#covered + 1}`);
      const wanted = this.#size + records.length / ENTRY_BYTES;
      const job = { kind: 'append', entries: records } as const;
      const { size } = await this.#thread.run(job, [records.buffer as ArrayBuffer]);
      if (size !== wanted) throw new Error(`has ${size} entries, and should have ${wanted}`);
      this.#size = size;
    }
    if (this.#signed === this.#size) return;
    await this.#thread.run({ kind: 'sign' });
    this.#signed = this.#size;
    await this.#noteSigned();
  }
}

/** The id of a log, made when it has none. */
async function identityOf(folder: string): Promise<string> {
  const path = join(folder, IDENTITY);
  const known = new LogReader(folder).id();
  if (known !== null) {
    await syncFound(path);
    return known;
  }
  const id = randomUUID();
  await writeOnce(path, Buffer.from(`${JSON.stringify({ id })}\n`));
  return id;
}
