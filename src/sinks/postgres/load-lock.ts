import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import { inTransaction, type Database } from '../../tables/database/database.ts';
import { tableName } from '../../tables/sql/dialects/dialect.ts';

/** Milliseconds between two heartbeats of a load that is not in a transaction. */
const BEAT_MS = 1000;
/** Milliseconds between two checks of another load's heartbeats. */
const CHECK_MS = 250;
/** Checks without a new heartbeat after which a load is dead. */
const CHECKS = 12;

/**
 * Lets one `millrace load` at a time into a schema. A session lock cannot do that: behind a pooler the next transaction has
 * another session. So a row of `_millrace_lock` has the id of the load and a count of its heartbeats, and each transaction of the load
 * holds a transaction lock.
 *
 * Modes: held → lost (another load has seen no heartbeat, and took over) or released.
 */
export class LoadLock {
  readonly #database: Database;
  readonly #where: string;
  readonly #table: string;
  readonly #owner = randomUUID();
  #timer: NodeJS.Timeout | undefined;
  /** The heartbeat in flight. */
  #beat: Promise<unknown> | null = null;

  private constructor(database: Database, where: string) {
    this.#database = database;
    this.#where = where;
    this.#table = tableName(database.sql, '_millrace_lock');
  }

  /**
   * @param where names the database in errors
   * @param isIdle whether the connection is in no transaction, and begins none
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
    const first = await lock.#check((found) => found === null);
    if (first !== null) await lock.#takeOver(first, signal);
    lock.#timer = setInterval(() => {
      if (!isIdle() || lock.#beat !== null) return;
      // After a failure the next transaction fails too.
      const beat = lock.#addBeat().catch(() => undefined);
      lock.#beat = beat.then(() => (lock.#beat = null));
    }, BEAT_MS).unref();
    return lock;
  }

  /** Waits for the heartbeat in flight: the connection runs one query at a time. */
  async quiet(): Promise<void> {
    await this.#beat;
  }

  /** Called at the begin of each transaction. @throws MillraceError database_in_use when another load took over */
  async hold(): Promise<void> {
    await this.#database.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [this.#table]);
    const rows = await this.#addBeat();
    if (rows.length === 0)
      throw this.#inUse('this load did not answer for a while; run it again when that one is done');
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beat;
    await this.#database.query(`DELETE FROM ${this.#table} WHERE owner = $1`, [this.#owner]);
  }

  /** @param left state of the other load @throws MillraceError database_in_use when that load gives a heartbeat, or ends */
  async #takeOver(left: string, signal: AbortSignal): Promise<void> {
    for (let checks = 1; checks <= CHECKS; checks += 1) {
      await wait(CHECK_MS, undefined, { signal });
      const found = await this.#check((now) => now === left && checks === CHECKS);
      if (found !== left) throw this.#inUse('wait until it is done');
    }
  }

  #addBeat(): Promise<readonly unknown[]> {
    return this.#database.query(`UPDATE ${this.#table} SET beats = beats + 1 WHERE owner = $1 RETURNING 1`, [
      this.#owner,
    ]);
  }

  /**
   * Takes the lock if `isFree` of its present state.
   * @returns that state: id and heartbeats of another load; null for none
   * @throws MillraceError database_in_use while another load is in a transaction
   */
  #check(isFree: (found: string | null) => boolean): Promise<string | null> {
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
