import { formatRecords, parseRecord } from '../../core/archive-record.ts';
import type { JournalEvent } from '../../core/event.ts';
import { DELIVERED, type Delivery, type SendResult, type Sink, type SinkContext } from '../../core/sink.ts';
import { onAbort, orAborted } from '../../lib/abort.ts';
import { copyCompact } from '../../lib/json-compact.ts';
import { inTransaction } from '../../tables/database/database.ts';
import {
  claimEvents,
  createLedger,
  moveEvents,
  nextLoad,
  readLoads,
  writeLoad,
} from '../../tables/database/ledger.ts';
import { keyOf, type LoadedRecord, Shapes } from '../../tables/database/shapes.ts';
import { ensureTables, type LoadedTables } from '../../tables/database/tables.ts';
import { type TableEntry, TABLES } from '../../tables/tables.ts';
import { nameOf } from '../../vendors/postgres/connection.ts';
import { faultOf, resultOf } from '../../vendors/postgres/failure.ts';
import { Sends } from '../broker.ts';
import type { PostgresOptions } from './config.ts';
import { PostgresDatabase } from './database.ts';

export function createSink(options: PostgresOptions, context: SinkContext): Sink {
  return new PostgresSink(options, context);
}

/**
 * Writes events to PostgreSQL as the rows that `millrace load` makes of an archive. A batch is a transaction, which also notes
 * its events: an event that is sent again changes nothing. All destinations are the one database.
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
    // A transaction of one event costs as much as one of many.
    linger: 20,
  } as const;

  readonly #options: PostgresOptions;
  readonly #context: SinkContext;
  #tables: LoadedTables = { known: TABLES, entries: [], names: [], shape: '' };
  /** Load number of this sink's rows; a new one when its tables change. */
  #load = 0;
  /** Its earlier numbers, and the tables that rows of each are missing in. */
  #earlier: readonly { readonly load: number; readonly lacking: readonly TableEntry[] }[] = [];
  readonly #open = new Set<PostgresDatabase>();
  /** Aborts connections that are being opened. */
  readonly #ending = new AbortController();
  /** Connections that no batch uses. */
  #idle: PostgresDatabase[] = [];
  readonly #sends = new Sends();
  /** Of each table, when the newest event was received that was written, in ms. */
  readonly #newest = new Map<string, number>();

  constructor(options: PostgresOptions, context: SinkContext) {
    this.#options = options;
    this.#context = context;
  }

  /** Connects, and creates missing tables. */
  async open(signal: AbortSignal): Promise<void> {
    try {
      await this.#transact(signal, async (database) => {
        await createLedger(database);
        this.#tables = await ensureTables(database, TABLES.with(this.#options.learned), this.#options.tables);
        await this.#number(database);
      });
    } catch (error) {
      const name = nameOf(this.#options.connectionString);
      throw new Error(`${name}: ${faultOf(error).reason}`, { cause: error });
    }
  }

  /** One transaction. After a lost answer the next attempt finds the events there. */
  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    return this.#sends.run(batch, signal, async (results) => {
      try {
        await this.#transact(signal, (database) => this.#write(database, batch));
        results.fill(DELIVERED);
        this.#noteNewest(batch);
      } catch (error) {
        if (!signal.aborted) results.fill(resultOf(error, batch.length));
      }
    });
  }

  newest(): Iterable<readonly [string, number]> {
    return this.#newest;
  }

  #noteNewest(batch: readonly Delivery[]): void {
    const { known, entries } = this.#tables;
    for (const [type, events] of Map.groupBy(batch, ({ event }) => event.type)) {
      const newest = events.reduce((last, { event }) => Math.max(last, event.receivedAt), 0);
      for (const entry of entries.filter((one) => known.takes(one, type))) {
        const { name } = entry.definition;
        this.#newest.set(name, Math.max(newest, this.#newest.get(name) ?? 0));
      }
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    const forget = onAbort(signal, () => {
      this.#ending.abort();
      this.#open.forEach((database) => database.destroy());
    });
    try {
      await this.#sends.ended(signal);
      const idle = this.#idle;
      this.#idle = [];
      await orAborted(Promise.all(idle.map((database) => database.close())), signal);
    } finally {
      forget();
    }
  }

  /** Runs `work` in a transaction on a connection of its own, which is closed when that fails. */
  async #transact(signal: AbortSignal, work: (database: PostgresDatabase) => Promise<void>): Promise<void> {
    const database =
      this.#idle.pop() ??
      (await PostgresDatabase.open(this.#options, AbortSignal.any([signal, this.#ending.signal])));
    this.#open.add(database);
    const forget = onAbort(signal, () => database.destroy());
    try {
      await inTransaction(database, () => work(database));
      this.#idle.push(database);
    } catch (error) {
      database.destroy();
      this.#open.delete(database);
      throw error;
    } finally {
      forget();
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
    const shapes = new Shapes(this.#tables.known, entries, database, {
      onUnknown: () => undefined,
      onWithoutTable: () => undefined,
    });
    const rows = shapes.shape(records);
    for (const { table, code, reason } of rows.rejects)
      log.warn({ sink: name, table, code, reason }, 'event makes no row');
    // A row that the database refuses fails the batch, and its event becomes a dead letter.
    for (const { definition, bytes } of rows.tables) await database.append(definition, bytes, this.#load);
  }

  /** Takes the load number that this sink had with these tables, or a new one. The `shape` of a sink's load names its tables. */
  async #number(database: PostgresDatabase): Promise<void> {
    const { entries } = this.#tables;
    const shape = entries
      .map(({ definition }) => definition.name)
      .toSorted()
      .join(' ');
    // The name of the sink among the archives of the ledger.
    const archive = `sink:${this.#context.name}`;
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

const END = Buffer.from('}');

/**
 * The event as its archive record, so that its rows are the same as those of an archive. Where the row's `event` would not have
 * the exact bytes, because of white space or escapes, `body_base64` has them.
 */
function toRecord(event: JournalEvent): LoadedRecord {
  const line = formatRecords([event]).subarray(0, -1);
  const parsed = parseRecord(line);
  if (!parsed.ok) throw new Error(`event ${event.id}: ${parsed.reason}`);
  const { record } = parsed;
  const { body } = event;
  // A record that does not end in the body has `body_base64` already.
  const hasBase64 = !line.subarray(-1 - body.length, -1).equals(body);
  if (hasBase64 || isCompact(body)) return { record, body, text: line };
  const exact = Buffer.from(`,"body_base64":"${body.toString('base64')}"`);
  return { record, body, text: Buffer.concat([line.subarray(0, -1), exact, END]) };
}

/** Reused by `isCompact`. */
let room = Buffer.alloc(0);

/** Whether the shaper writes the body as it is. */
function isCompact(body: Buffer): boolean {
  if (room.length < body.length * 2) room = Buffer.alloc(body.length * 4);
  return room.subarray(0, copyCompact(body, 0, body.length, room, 0)).equals(body);
}
