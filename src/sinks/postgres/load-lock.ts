import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import { inTransaction, type Database } from '../../tables/database/database.ts';
import { tableName } from '../../tables/sql/dialects/dialect.ts';

/** Milliseconds between two signs of life of a load that is not in a transaction. */
const BEAT = 1000;
/** Milliseconds between two looks for one, and the looks after which a load that has given none is dead. */
const LOOK = 250;
const LOOKS = 12;

/**
 * Lets one `millrace load` at a time into a schema. A lock of the session cannot do that: behind a pooler the next transaction
 * has another session. So a row of `_millrace_lock` has the id of the load and a count of its signs of life, and each of its
 * transactions holds a lock that ends with it.
 *
 * Modes: held → lost (another load has seen no sign of life, and took over) or released.
 */
export class LoadLock {
  readonly #database: Database;
  readonly #where: string;
  readonly #table: string;
  readonly #owner = randomUUID();
  #timer: NodeJS.Timeout | undefined;
  /** The sign of life that is on its way. */
  #beat: Promise<unknown> | null = null;

  private constructor(database: Database, where: string) {
    this.#database = database;
    this.#where = where;
    this.#table = tableName(database.sql, '_millrace_lock');
  }

  /**
   * @param where names the database in errors
   * @param isIdle whether the connection is in no transaction, nor on its way into one
   * @throws MillraceError database_in_use
   */
  static async take(
    database: Database,
    where: string,
    isIdle: () => boolean,
    signal: AbortSignal,
  ): Promise<LoadLock> {
    const lock = new LoadLock(database, where);
    await inTransaction(database, async () => {
      await database.createSchema();
      await database.run(
        `CREATE TABLE IF NOT EXISTS ${lock.#table} (owner text PRIMARY KEY, beats bigint NOT NULL)`,
      );
    });
    const first = await lock.#look((found) => found === null);
    if (first !== null) await lock.#takeOver(first, signal);
    lock.#timer = setInterval(() => {
      if (!isIdle() || lock.#beat !== null) return;
      // What fails is told by the next transaction.
      const beat = lock.#live().catch(() => undefined);
      lock.#beat = beat.then(() => (lock.#beat = null));
    }, BEAT).unref();
    return lock;
  }

  /** Waits for a sign of life that is on its way: the connection does one thing at a time. */
  async quiet(): Promise<void> {
    await this.#beat;
  }

  /** In each transaction, which others see from then on. @throws MillraceError database_in_use when another load took over */
  async hold(): Promise<void> {
    await this.#database.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [this.#table]);
    const rows = await this.#live();
    if (rows.length === 0)
      throw this.#inUse('this load did not answer for a while; run it again when that one is done');
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beat;
    await this.#database.query(`DELETE FROM ${this.#table} WHERE owner = $1`, [this.#owner]);
  }

  /** @throws MillraceError database_in_use when the load that has left this gives a sign of life, or ends */
  async #takeOver(left: string, signal: AbortSignal): Promise<void> {
    for (let looks = 1; looks <= LOOKS; looks += 1) {
      await wait(LOOK, undefined, { signal });
      const found = await this.#look((now) => now === left && looks === LOOKS);
      if (found !== left) throw this.#inUse('wait until it is done');
    }
  }

  #live(): Promise<readonly unknown[]> {
    return this.#database.query(`UPDATE ${this.#table} SET beats = beats + 1 WHERE owner = $1 RETURNING 1`, [
      this.#owner,
    ]);
  }

  /**
   * Takes the lock where `isFree` says so of what is found there.
   * @returns what another load has left there; null for nothing
   * @throws MillraceError database_in_use while it is in a transaction
   */
  #look(isFree: (found: string | null) => boolean): Promise<string | null> {
    const database = this.#database;
    return inTransaction(database, async () => {
      const key = [this.#table];
      const [locked] = await database.query('SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))', key);
      if (locked?.[0] !== true) throw this.#inUse('wait until it is done');
      const [row] = await database.query(`SELECT concat(owner, ' ', beats) FROM ${this.#table}`);
      const found = row === undefined ? null : String(row[0]);
      if (isFree(found)) {
        await database.run(`DELETE FROM ${this.#table}`);
        await database.query(`INSERT INTO ${this.#table} (owner, beats) VALUES ($1, 0)`, [this.#owner]);
      }
      return found;
    });
  }

  #inUse(advice: string): MillraceError {
    return new MillraceError('database_in_use', `${this.#where}: ${advice}`);
  }
}
