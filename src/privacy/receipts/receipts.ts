import { randomFillSync, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { ENTRY_BYTES, LOG_OFFSET, SALT_BYTES, type ReceiptLog } from '../../core/receipt.ts';
import type { ReceiptsStatus } from '../../core/operations.ts';
import type { SinkLog } from '../../core/sink.ts';
import { makeFolder, syncFound } from '../../lib/durable.ts';
import { own, type FileLock } from '../../lib/file-lock.ts';
import { writeOnce } from '../../lib/new-file.ts';
import { Serial } from '../../lib/serial.ts';
import { ThreadPool, threadProgram } from '../../lib/thread-pool.ts';
import { IDENTITY, LogReader } from './log-files.ts';
import type { Done, Job, LogDocument, Opening } from './job.ts';

/** The journal, as far as the log needs it. */
export interface ReceiptSource {
  readonly lastSeq: number;
  readonly checkpoints: {
    load(key: string): Promise<string | null>;
    save(key: string, value: string): Promise<void>;
  };
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
 * The log of receipts of a running receiver. The journal's events are its entries, in their order: entry = seq + offset, so that
 * a commit writes nothing more, and what a crash has kept from the log is read from the journal again.
 *
 * Modes: running ⇄ behind (the log could not be written: deliveries go on, without receipts, and it is tried again); either →
 * stopped. `#enter` changes between the first two.
 */
export class Receipts {
  readonly #options: ReceiptsOptions;
  readonly #thread: ThreadPool<Job, Done>;
  readonly #turns = new Serial();
  readonly #salts = Buffer.alloc(SALTS * SALT_BYTES);
  #saltsLeft = 0;
  /** What every header begins with. */
  readonly #begin: string;
  #offset = 0;
  #id = '';
  #size = 0;
  #signed = 0;
  /** Since when it could not be written, milliseconds since the epoch; null while it can. */
  #behindSince: number | null = null;
  #lock: FileLock | null = null;
  #isStopped = false;
  #stopTimer: () => void = () => undefined;

  /** @throws MillraceError receipts_unusable */
  static async open(options: ReceiptsOptions): Promise<Receipts> {
    let receipts: Receipts | null = null;
    try {
      receipts = new Receipts(options);
      await receipts.#open();
      return receipts;
    } catch (error) {
      if (receipts !== null) await receipts.#end();
      throw error instanceof MillraceError ? error : unusable(options.folder, error);
    }
  }

  private constructor(options: ReceiptsOptions) {
    this.#options = options;
    const { folder, origin, pem } = options;
    this.#begin = `log="${origin}", leaf=`;
    const url = threadProgram('log-thread', import.meta.url);
    this.#thread = new ThreadPool(url, { folder, origin, pem } satisfies Opening, 1);
  }

  /** The salt of an event that comes in: 22 digits of base64url. */
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
   * What a delivery is answered with: a dictionary of structured fields (RFC 9651). Nothing while the log cannot be written: the
   * event gets its entry once it can, and who repairs it may have to begin a new log.
   */
  header(seq: number, salt: string, receivedAt: number): string | undefined {
    if (this.#behindSince !== null) return undefined;
    return `${this.#begin}${seq + this.#offset}, salt="${salt}", received=${receivedAt}`;
  }

  /**
   * What can be read of the log, in the thread that has it: who receives does not wait for readers.
   * @param path `checkpoint`, `key`, `tile/…`, or the number of an entry, which it proves
   */
  async find(path: string): Promise<LogDocument | null> {
    const { found = null } = await this.#thread.run({ entries: null, sign: false, find: path });
    return found;
  }

  /** Resolves when the log has all events that the journal has now, and is signed. @throws MillraceError receipts_behind */
  cover(): Promise<void> {
    const upTo = this.#options.journal.lastSeq;
    return this.#turns.run(async () => {
      try {
        await this.#take(upTo);
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

  /** @param error why it could not be written; null: it could */
  #enter(error: unknown): void {
    const { log, folder, clock } = this.#options;
    const wasBehind = this.#behindSince !== null;
    if (error === null && wasBehind)
      log.info({ folder, entries: this.#size }, 'the log of receipts has all events again');
    if (error !== null && !wasBehind)
      log.error(
        { err: error, folder },
        'the log of receipts cannot be written: deliveries are answered without receipts, and the journal keeps their events for it, until it can',
      );
    this.#behindSince = error === null ? null : (this.#behindSince ?? clock.now());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer();
    await this.cover().catch(() => undefined);
    await this.#end();
  }

  async #end(): Promise<void> {
    await this.#thread.close();
    this.#lock?.release();
  }

  async #open(): Promise<void> {
    const { folder, origin, journal, clock, interval } = this.#options;
    makeFolder(folder, 0o700);
    this.#lock = await own(
      join(folder, 'lock'),
      (owner) => new MillraceError('receipts_in_use', `${folder} is used by ${owner}`),
    );
    const { size, hasMadeHashes } = await this.#thread.run({ entries: null, sign: false });
    this.#size = size;
    if (hasMadeHashes === true)
      this.#options.log.warn(
        { folder },
        'the hashes of the log of receipts were damaged; they were made again from its entries, which are as they were signed',
      );
    this.#id = await identityOf(folder);
    const told = await journal.receipts.log();
    // A second log under the name of the first would make what was answered before look false.
    if (told !== null && told.id !== this.#id && told.origin === origin)
      throw new Error(
        `is not the log ${origin} that the journal's events were entered in: it was removed or replaced. ` +
          'Restore it; or begin a new log, with another receipts.origin',
      );
    const key = LOG_OFFSET + this.#id;
    const known = await journal.checkpoints.load(key);
    this.#offset = known === null ? size - journal.lastSeq - 1 : Number(known);
    if (known === null) await journal.checkpoints.save(key, String(this.#offset));
    if (told?.id === this.#id && this.#covered < told.seq)
      throw new Error(
        `has ${size} entries, and had ${told.seq + this.#offset + 1}: it is an older copy, or a part of it is gone. ` +
          'Restore it; or begin a new log, with another receipts.origin and another folder',
      );
    if (this.#covered > journal.lastSeq)
      throw new Error(`has ${size} entries, and the journal fewer events: it is not the journal it was`);
    // Entries and seqs go together from here on, whatever was there before.
    await this.#tell();
    this.#signed = size;
    const again = (): void => {
      if (this.#isStopped) return;
      this.#stopTimer = clock.after(interval, () => {
        void this.cover()
          .catch(() => undefined)
          .finally(again);
      });
    };
    again();
  }

  /** The newest seq that has an entry. */
  get #covered(): number {
    return this.#size - this.#offset - 1;
  }

  /** The journal knows how far this log was when it was last signed, so that an older copy in its place is noticed. */
  #tell(): Promise<void> {
    const { journal, origin } = this.#options;
    return journal.receipts.hold({ id: this.#id, origin, seq: this.#covered });
  }

  async #take(upTo: number): Promise<void> {
    const { journal } = this.#options;
    // What could not be written has been cut off again.
    if (this.#behindSince !== null) {
      const before = { id: this.#id, signed: this.#signed };
      const opened = await this.#thread.run({ entries: null, sign: false, before });
      this.#size = opened.size;
    }
    while (this.#covered < upTo) {
      const { firstSeq, records } = await journal.receipts.entries(this.#covered, PAGE);
      if (firstSeq !== this.#covered + 1 || records.length === 0)
        throw new Error(`the journal has no event ${this.#covered + 1}`);
      const entries = records.length / ENTRY_BYTES;
      const done = await this.#thread.run({ entries: records, sign: false }, [records.buffer as ArrayBuffer]);
      if (done.size !== this.#size + entries) throw new Error(`has ${done.size} entries`);
      this.#size = done.size;
    }
    if (this.#signed === this.#size) return;
    await this.#thread.run({ entries: null, sign: true });
    this.#signed = this.#size;
    await this.#tell();
  }
}

/** Names a log for the journal, so that another one in its place is noticed. */
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

function unusable(folder: string, error: unknown): MillraceError {
  return new MillraceError('receipts_unusable', `${folder}: ${messageOf(error)}`, { cause: error });
}
