import { randomFillSync, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../core/clock.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { ENTRY_BYTES, SALT_BYTES } from '../core/receipt.ts';
import type { SinkLog } from '../core/sink.ts';
import { makeFolder, readIfThere } from '../lib/durable.ts';
import { writeOnce } from '../lib/new-file.ts';
import { Serial } from '../lib/serial.ts';
import { ThreadPool } from '../lib/thread-pool.ts';
import type { Done, Job, Opening } from './job.ts';
import { LogReader } from './log-files.ts';
import { openCheckpoint, type NoteVerifier } from './note.ts';
import { inclusionProof } from './proofs.ts';
import { formatProof } from './proof-text.ts';

/** The journal, as far as the log needs it. */
export interface ReceiptSource {
  readonly lastSeq: number;
  readonly checkpoints: {
    load(key: string): Promise<string | null>;
    save(key: string, value: string): Promise<void>;
  };
  receiptEntries(
    after: number,
    count: number,
  ): Promise<{ readonly firstSeq: number; readonly records: Uint8Array }>;
  holdReceipts(seq: number | null): Promise<void>;
}

export interface ReceiptsOptions extends Opening {
  readonly verifier: NoteVerifier;
  readonly journal: ReceiptSource;
  readonly clock: Clock;
  readonly log: SinkLog;
  /** Milliseconds between two checkpoints. */
  readonly interval: number;
}

/** Entries asked of the journal at once: about a millisecond of its thread, which commits wait for. */
const PAGE = 256;
/** Salts made at once. */
const SALTS = 1024;
const IDENTITY = 'log.json';
/** Under this, and the identity of a log, the journal has which entry its first event is. */
const OFFSET = 'receipts/';

/**
 * The log of receipts of a running receiver. The journal's events are its entries, in their order: entry = seq + offset, so that
 * a commit writes nothing more, and what a crash has kept from the log is read from the journal again.
 *
 * Modes: running ⇄ behind (the log could not be written: deliveries go on, and it is tried again); either → stopped.
 */
export class Receipts {
  readonly #options: ReceiptsOptions;
  readonly reader: LogReader;
  readonly #thread: ThreadPool<Job, Done>;
  readonly #turns = new Serial();
  readonly #salts = Buffer.alloc(SALTS * SALT_BYTES);
  #saltsLeft = 0;
  #offset = 0;
  #size = 0;
  #signed = 0;
  #isBehind = false;
  #isStopped = false;
  #stopTimer: () => void = () => undefined;

  /** @throws MillraceError receipts_unusable */
  static async open(options: ReceiptsOptions): Promise<Receipts> {
    const receipts = new Receipts(options);
    try {
      await receipts.#open();
      return receipts;
    } catch (error) {
      await receipts.#thread.close();
      throw unusable(options.folder, error);
    }
  }

  private constructor(options: ReceiptsOptions) {
    this.#options = options;
    this.reader = new LogReader(options.folder);
    const { folder, origin, pem } = options;
    const program = import.meta.url.endsWith('.ts') ? './log-thread.ts' : './log-thread.js';
    const url = new URL(program, import.meta.url);
    this.#thread = new ThreadPool(url, { folder, origin, pem } satisfies Opening, 1);
  }

  get verifier(): NoteVerifier {
    return this.#options.verifier;
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

  /** What a delivery is answered with: a dictionary of structured fields (RFC 9651). */
  header(seq: number, salt: string, receivedAt: number): string {
    return `log="${this.#options.origin}", leaf=${seq + this.#offset}, salt="${salt}", received=${receivedAt}`;
  }

  /** The signed note of now; null before there is one. */
  checkpoint(): string | null {
    return this.reader.checkpoint();
  }

  /** Proves that an entry is in the log: c2sp.org/tlog-proof@v1. Null while the log does not have it. */
  async proof(index: number): Promise<string | null> {
    const checkpoint = this.checkpoint();
    const head = checkpoint === null ? null : openCheckpoint(checkpoint, this.#options.verifier);
    if (checkpoint === null || head === null || index >= head.size) return null;
    const tree = this.reader.tree(head.size);
    const hashes = await inclusionProof(index, head.size, (from, to) => tree.range(from, to));
    return formatProof({ extra: Buffer.alloc(0), index, hashes, checkpoint });
  }

  /** Resolves when the log has all events that the journal has now, and is signed. @throws MillraceError receipts_behind */
  cover(): Promise<void> {
    const upTo = this.#options.journal.lastSeq;
    return this.#turns.run(async () => {
      try {
        await this.#take(upTo);
        this.#isBehind = false;
      } catch (error) {
        const { log, folder } = this.#options;
        if (!this.#isBehind) log.error({ err: error, folder }, 'the log of receipts cannot be written');
        this.#isBehind = true;
        throw new MillraceError('receipts_behind', messageOf(error), { cause: error });
      }
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer();
    await this.cover().catch(() => undefined);
    await this.#thread.close();
  }

  async #open(): Promise<void> {
    const { folder, journal, clock, interval } = this.#options;
    makeFolder(folder, 0o700);
    const { size } = await this.#thread.run({ entries: null, sign: false });
    this.#size = size;
    const key = OFFSET + (await identityOf(folder));
    const known = await journal.checkpoints.load(key);
    this.#offset = known === null ? size - journal.lastSeq - 1 : Number(known);
    if (known === null) await journal.checkpoints.save(key, String(this.#offset));
    if (this.#covered > journal.lastSeq)
      throw new Error(`has ${size} entries, and the journal fewer events: it is not the journal it was`);
    // Entries and seqs go together from here on, whatever was there before.
    await journal.holdReceipts(this.#covered);
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

  async #take(upTo: number): Promise<void> {
    const { journal } = this.#options;
    // What could not be written has been cut off again.
    if (this.#isBehind) ({ size: this.#size } = await this.#thread.run({ entries: null, sign: false }));
    while (this.#covered < upTo) {
      const { firstSeq, records } = await journal.receiptEntries(this.#covered, PAGE);
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
    await journal.holdReceipts(this.#covered);
  }
}

/** Names a log for the journal, so that another one in its place is noticed. */
async function identityOf(folder: string): Promise<string> {
  const path = join(folder, IDENTITY);
  const known = readIfThere(path);
  if (known !== null) return (JSON.parse(known) as { readonly id: string }).id;
  const id = randomUUID();
  await writeOnce(path, Buffer.from(`${JSON.stringify({ id })}\n`));
  return id;
}

function unusable(folder: string, error: unknown): MillraceError {
  return new MillraceError('receipts_unusable', `${folder}: ${messageOf(error)}`, { cause: error });
}
