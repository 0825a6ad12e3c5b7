import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { onAbort, orAborted } from '../../lib/abort.ts';
import { inTransaction } from '../../load/database.ts';
import { claimEvents, createLedger, moveEvents, nextLoad, readLoads, writeLoad } from '../../load/ledger.ts';
import { keyOf, type LoadedRecord, Shapes } from '../../load/shapes.ts';
import { ensureTables, type LoadedTables } from '../../load/tables.ts';
import { type TableEntry, TABLES } from '../../warehouse/tables.ts';
import { ABORTED } from '../failure.ts';
import type { PostgresOptions } from './config.ts';
import { nameOf } from './connection.ts';
import { PostgresDatabase } from './database.ts';
import { faultOf, resultOf } from './failure.ts';
import { toRecord } from './message.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: PostgresOptions, context: SinkContext): Sink {
  return new PostgresSink(options, context);
}

/**
 * Writes events to PostgreSQL as rows, the same as `millrace load` makes of an archive. A batch is a transaction that also
 * notes whose rows are there: what is sent again, because its answer was lost, changes nothing. All destinations are the
 * one database.
 *
 * Modes: new → open (by `open`) → closed.
 */
export class PostgresSink implements Sink {
  readonly limits = {
    batchCount: 500,
    batchBytes: 4 * 1024 * 1024,
    eventBytes: Number.POSITIVE_INFINITY,
    inFlight: 2,
    order: 'user',
    batchBy: 'mixed',
    // A transaction with one event costs as much as one with many.
    linger: 20,
  } as const;

  readonly #options: PostgresOptions;
  readonly #context: SinkContext;
  #tables: LoadedTables = { known: TABLES, entries: [], names: [], shape: '' };
  /** Number that the rows of this sink carry; another one from when it has other tables. */
  #load = 0;
  /** Numbers it had before, and what it makes of their events that it did not then. */
  #earlier: readonly { readonly load: number; readonly lacking: readonly TableEntry[] }[] = [];
  readonly #open = new Set<PostgresDatabase>();
  /** Ends connections that are being opened. */
  readonly #ending = new AbortController();
  /** Connections that no batch uses. */
  #idle: PostgresDatabase[] = [];
  readonly #running = new Set<Promise<void>>();

  constructor(options: PostgresOptions, context: SinkContext) {
    this.#options = options;
    this.#context = context;
  }

  /** Connects, and makes the tables if they are not there. */
  async open(signal: AbortSignal): Promise<void> {
    let database: PostgresDatabase | null = null;
    let forget: (() => void) | null = null;
    try {
      const opened = (database = await PostgresDatabase.open(this.#options, signal));
      this.#open.add(opened);
      forget = onAbort(signal, () => opened.destroy());
      await inTransaction(opened, async () => {
        await createLedger(opened);
        this.#tables = await ensureTables(opened, TABLES.with(this.#options.learned), this.#options.tables);
        await this.#number(opened);
      });
      this.#idle.push(opened);
    } catch (error) {
      this.#drop(database);
      const name = nameOf(this.#options.connectionString);
      throw new Error(`${name}: ${faultOf(error).reason}`, { cause: error });
    } finally {
      forget?.();
    }
  }

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    if (signal.aborted) return batch.map(() => ABORTED);
    const work = this.#send(batch, signal);
    const ended = work.then(() => undefined);
    this.#running.add(ended);
    try {
      const result = await work;
      return batch.map(() => result);
    } finally {
      this.#running.delete(ended);
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    const forget = onAbort(signal, () => {
      this.#ending.abort();
      this.#open.forEach((database) => database.destroy());
    });
    try {
      await orAborted(Promise.allSettled(this.#running), signal);
      const idle = this.#idle;
      this.#idle = [];
      await orAborted(Promise.all(idle.map((database) => database.close())), signal);
    } finally {
      forget();
    }
  }

  #drop(database: PostgresDatabase | null): void {
    if (database === null) return;
    database.destroy();
    this.#open.delete(database);
  }

  /** One transaction. An answer that is lost on its way is made good by the next attempt, which finds the events there. */
  async #send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult> {
    let database: PostgresDatabase | null = null;
    let forget: (() => void) | null = null;
    try {
      const used = (database =
        this.#idle.pop() ??
        (await PostgresDatabase.open(this.#options, AbortSignal.any([signal, this.#ending.signal]))));
      this.#open.add(used);
      forget = onAbort(signal, () => used.destroy());
      await inTransaction(used, () => this.#write(used, batch));
      this.#idle.push(used);
      return DELIVERED;
    } catch (error) {
      this.#drop(database);
      return signal.aborted ? ABORTED : resultOf(error, batch.length);
    } finally {
      forget?.();
    }
  }

  async #write(database: PostgresDatabase, batch: readonly Delivery[]): Promise<void> {
    const records = batch.map(({ event }) => toRecord(event));
    const keys = records.map(keyOf);
    const of = (taken: Set<string>): LoadedRecord[] =>
      records.filter((_, nth) => taken.delete(keys[nth] ?? ''));
    for (const { load, lacking } of this.#earlier)
      await this.#append(database, of(await moveEvents(database, load, this.#load, keys)), lacking);
    await this.#append(database, of(await claimEvents(database, this.#load, keys)), this.#tables.entries);
  }

  async #append(
    database: PostgresDatabase,
    records: readonly LoadedRecord[],
    entries: readonly TableEntry[],
  ): Promise<void> {
    if (records.length === 0 || entries.length === 0) return;
    const { name, log } = this.#context;
    const shapes = new Shapes(this.#tables.known, entries, {
      onUnknown: () => undefined,
      onWithoutTable: () => undefined,
    });
    const rows = shapes.shape(records);
    for (const { table, code, reason } of rows.rejects)
      log.warn({ sink: name, table, code, reason }, 'event makes no row');
    // What is refused here ends the batch, and the event with it becomes a dead letter.
    for (const { definition, lines } of rows.tables)
      await database.append(definition, lines.view(), this.#load);
  }

  /** Takes the number that this sink has had with these tables, or a new one. `shape` of a sink names its tables. */
  async #number(database: PostgresDatabase): Promise<void> {
    const { entries } = this.#tables;
    const shape = entries
      .map(({ definition }) => definition.name)
      .toSorted()
      .join(' ');
    const archive = archiveOf(this.#context);
    const loads = (await readLoads(database)).filter((load) => load.archive === archive);
    const unnamed = loads.find((load) => load.shape === '');
    if (unnamed !== undefined)
      throw new Error(`load ${unnamed.load} of _millrace_loads names no tables: it is of another format`);
    const own = loads.map((load) => ({ ...load, tables: load.shape.split(' ') }));
    const same = own.findLast(({ tables }) => tables.toSorted().join(' ') === shape);
    this.#load = same?.load ?? (await nextLoad(database));
    this.#earlier = own.flatMap(({ load, tables }) => {
      const lacking = entries.filter(({ definition }) => !tables.includes(definition.name));
      return load === this.#load ? [] : [{ load, lacking }];
    });
    if (same !== undefined) return;
    const empty = { file: '', sha256: '', records: 0, sealed: 0, destroyed: 0 };
    await writeLoad(database, { load: this.#load, archive, shape, ...empty });
  }
}

/** Under this its numbers are noted. */
function archiveOf({ name }: SinkContext): string {
  return `sink:${name}`;
}
