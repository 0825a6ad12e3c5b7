import type { Clock } from '../../src/core/clock.ts';
import { MillraceError } from '../../src/core/errors.ts';
import { answer } from '../../src/journal/perform.ts';
import type { JournalOptions } from '../../src/journal/database.ts';
import { SqliteJournal, type SqliteJournalOptions } from '../../src/journal/sqlite-journal.ts';
import { Store } from '../../src/journal/store.ts';
import type { Writer } from '../../src/journal/writer-thread.ts';

const turned = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The writer thread without a thread: it answers in a later turn, and never again once it is killed. */
export class InlineWriter implements Writer {
  readonly #store: Store;
  readonly #turn: (() => Promise<void>) | null;
  readonly lastSeq: number;
  readonly repairs: Writer['repairs'];
  #isDead = false;

  /** @param turn what comes before each answer; null where a call is carried out at once */
  constructor(options: JournalOptions, turn: (() => Promise<void>) | null = turned) {
    this.#store = new Store(options);
    this.#turn = turn;
    this.lastSeq = this.#store.lastSeq;
    this.repairs = this.#store.repairs;
  }

  readonly call: Writer['call'] = async (call) => {
    if (this.#turn !== null) await this.#turn();
    if (this.#isDead) return new Promise<never>(() => undefined);
    const reply = answer(this.#store, call);
    if (!reply.ok) throw new MillraceError(reply.code, reply.detail);
    return reply.value;
  };

  /** It does not fail by itself: a call rejects with what went wrong. */
  onFailure(): void {}

  close(): Promise<void> {
    this.kill();
    return Promise.resolve();
  }

  /** What is committed stays, and nothing else. */
  kill(): void {
    if (!this.#isDead) this.#store.close();
    this.#isDead = true;
  }
}

function onFailure(error: MillraceError): never {
  throw error;
}

/** Options of a journal that tests fill no bound of. */
export function roomyJournal(
  path: string,
  clock: Clock,
  changes: Partial<SqliteJournalOptions> = {},
): SqliteJournalOptions {
  const bounds = { retention: 1e6, maxBytes: 1e9, dedupWindow: 1e6 };
  return { path, clock, onFailure, create: true, ...bounds, ...changes };
}

/** A journal on disk without its thread. */
export function inlineJournal(
  path: string,
  clock: Clock,
  changes: Partial<SqliteJournalOptions> = {},
): { readonly journal: SqliteJournal; readonly kill: () => void } {
  const options = roomyJournal(path, clock, changes);
  const writer = new InlineWriter(options);
  return { journal: new SqliteJournal(writer, options), kill: () => writer.kill() };
}
