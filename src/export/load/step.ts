import { readArchiveFile } from '../../archive/read.ts';
import type { ArchiveItem } from '../../archive/read-line.ts';
import type { RecordOpener } from '../../core/sealed-record.ts';
import { isErased } from '../source-bytes.ts';
import type { ArchiveFile } from './archives.ts';
import type { Database } from '../../tables/database/database.ts';
import type { TableDefinition } from '../../tables/definition.ts';
import type { TableFields } from '../../tables/learned/field-sums.ts';
import { textInRow } from '../../tables/shape/envelope.ts';
import { eventColumnsOf } from '../../tables/sql/identity.ts';
import {
  claimEvents,
  nextLoad,
  REFUSED,
  removeLoads,
  reviveDuplicates,
  writeLoad,
} from '../../tables/database/ledger.ts';
import type { LoadOptions } from './options.ts';
import {
  appendRows,
  keyOf,
  type OnRefused,
  rowsOfClaimed,
  Shapes,
  type ShapedRows,
} from '../../tables/database/shapes.ts';
import type { LoadedTables } from '../../tables/database/tables.ts';

/** A batch: records, and bytes of them, whose rows are brought to the database together. */
const BATCH_RECORDS = 2000;
const BATCH_BYTES = 2 * 1024 * 1024;

type ArchiveRecordItem = ArchiveItem & { kind: 'record' };

/** What loading some files has come to. */
export interface StepCounts {
  records: number;
  duplicates: number;
  rejects: number;
  problems: number;
  erased: number;
  rows: Record<string, number>;
}

export function noCounts(): StepCounts {
  return { records: 0, duplicates: 0, rejects: 0, problems: 0, erased: 0, rows: {} };
}

/** What a run loads into, and by what. */
export interface Load {
  readonly database: Database;
  readonly tables: LoadedTables;
  readonly opener: RecordOpener | undefined;
  readonly options: LoadOptions;
}

/** Loads files of archives in one transaction of the caller's. */
export class LoadStep {
  readonly counts = noCounts();
  /** Bytes of records so far. */
  bytes = 0;
  /** Whether files that were loaded before have to be loaded again. */
  revived = false;
  readonly #load: Load;
  readonly #shapes: Shapes;
  /** Rows that the database did not take. */
  #refused = 0;

  constructor(load: Load) {
    this.#load = load;
    this.#shapes = new Shapes(load.tables.known, load.tables.entries, load.options);
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#shapes.met();
  }

  /** Loads a file in place of what was loaded of it before. */
  async load(source: ArchiveFile, replaces: readonly number[], onBatch: () => void): Promise<void> {
    const { archive, root, file, sha256 } = source;
    const { database, tables, opener, options } = this.#load;
    if (replaces.length > 0) await removeLoads(database, tables.names, replaces);
    const load = await nextLoad(database);
    const before = { ...this.counts };
    const refusedBefore = this.#refused;
    let batch: ArchiveRecordItem[] = [];
    let bytes = 0;
    let sealed = 0;
    let isWhole = true;
    // While the database takes one batch, the next is read and shaped.
    let taken = Promise.resolve();
    const hand = async (): Promise<void> => {
      const records = batch;
      batch = [];
      bytes = 0;
      const made = this.#shapes.shape(records);
      await taken;
      onBatch();
      taken = this.#take(records, made, load);
      // Told where it is waited for.
      taken.catch(() => undefined);
    };
    try {
      const { places, signal } = options;
      for await (const item of readArchiveFile(places.at(root), file, { signal, opener })) {
        if (item.kind === 'problem') {
          if (isErased(item)) this.counts.erased += 1;
          else {
            isWhole = false;
            this.counts.problems += 1;
            options.onProblem(item.file, item.line, item.reason);
          }
          continue;
        }
        if (item.sealed) sealed += 1;
        this.counts.records += 1;
        this.bytes += item.text.length;
        bytes += item.text.length;
        batch.push(item);
        if (batch.length >= BATCH_RECORDS || bytes >= BATCH_BYTES) await hand();
      }
      if (batch.length > 0) await hand();
    } finally {
      // Nothing else may be asked of the connection before.
      await taken.catch(() => undefined);
    }
    await taken;
    await writeLoad(database, {
      load,
      archive,
      file,
      // What could not be read in all its lines is tried again the next time.
      sha256: isWhole ? `${this.#refused > refusedBefore ? REFUSED : ''}${sha256}` : '',
      shape: tables.shape,
      records: this.counts.records - before.records,
      sealed,
      destroyed: opener?.destroyed ?? 0,
    });
    if (replaces.length > 0 && (await reviveDuplicates(database))) this.revived = true;
  }

  /** Those that no load has: each event's rows are there once, however often it lies in archives. */
  async #take(records: readonly ArchiveRecordItem[], made: ShapedRows, load: number): Promise<void> {
    const { database, options } = this.#load;
    const keys = records.map(keyOf);
    const claimed = await claimEvents(database, load, keys);
    this.counts.duplicates += records.length - claimed.size;
    const own = rowsOfClaimed(this.#shapes, made, records, keys, claimed);
    for (const { nth, ...reject } of own.rows.rejects) {
      const { file, line } = own.records[nth] as ArchiveRecordItem;
      this.counts.rejects += 1;
      options.onReject({ ...reject, file, line });
    }
    const rows = await appendRows(database, own.rows, load, this.#setsAside(own.records));
    for (const [table, count] of Object.entries(rows))
      this.counts.rows[table] = (this.counts.rows[table] ?? 0) + count;
    this.#shapes.release(own.rows);
  }

  #setsAside(records: readonly ArchiveRecordItem[]): OnRefused {
    return (table, line, reason) => {
      const { file, line: number } = recordOf(records, table, line);
      this.#refused += 1;
      this.counts.rejects += 1;
      this.#load.options.onReject({ table: table.name, code: 'refused', reason, file, line: number });
    };
  }
}

/** The record that a row was made of. */
function recordOf(
  records: readonly ArchiveRecordItem[],
  table: TableDefinition,
  line: Buffer,
): ArchiveRecordItem {
  const row = JSON.parse(line.toString()) as Readonly<Record<string, unknown>>;
  const id = row[eventColumnsOf(table)?.id ?? ''];
  const found = records.find(({ record }) => textInRow(record.id) === id);
  return found ?? (records[0] as ArchiveRecordItem);
}
