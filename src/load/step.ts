import { readArchiveFile } from '../archive/read.ts';
import type { ArchiveItem } from '../archive/read-line.ts';
import { MillraceError } from '../core/errors.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import type { ArchiveFile } from './archives.ts';
import type { Database } from './database.ts';
import type { TableDefinition } from '../warehouse/definition.ts';
import type { TableFields } from '../warehouse/learned/field-sums.ts';
import { textInRow } from '../warehouse/shape/envelope.ts';
import { eventColumnsOf } from '../warehouse/sql/identity.ts';
import { claimEvents, nextLoad, REFUSED, removeLoads, reviveDuplicates, writeLoad } from './ledger.ts';
import type { LoadOptions } from './options.ts';
import { appendRows, keyOf, type OnRefused, rowsOfClaimed, Shapes, type ShapedRows } from './shapes.ts';
import type { LoadedTables } from './tables.ts';

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

/** Loads files of archives in one transaction of the caller's. */
export class LoadStep {
  readonly counts: StepCounts = { records: 0, duplicates: 0, rejects: 0, problems: 0, erased: 0, rows: {} };
  /** Bytes of records so far. */
  bytes = 0;
  /** Whether files that were loaded before have to be loaded again. */
  revived = false;
  readonly #database: Database;
  readonly #tables: LoadedTables;
  readonly #opener: RecordOpener | undefined;
  readonly #options: LoadOptions;
  readonly #shapes: Shapes;
  /** Rows that the database did not take. */
  #refused = 0;

  constructor(
    database: Database,
    tables: LoadedTables,
    opener: RecordOpener | undefined,
    options: LoadOptions,
  ) {
    this.#database = database;
    this.#tables = tables;
    this.#opener = opener;
    this.#options = options;
    this.#shapes = new Shapes(tables.known, tables.entries, options);
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#shapes.met();
  }

  /** Loads a file in place of what was loaded of it before. */
  async load(source: ArchiveFile, replaces: readonly number[], onBatch: () => void): Promise<void> {
    const { archive, root, file, sha256 } = source;
    if (replaces.length > 0) await removeLoads(this.#database, this.#tables.names, replaces);
    const load = await nextLoad(this.#database);
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
      const { places, signal } = this.#options;
      for await (const item of readArchiveFile(places.at(root), file, { signal, opener: this.#opener })) {
        if (item.kind === 'problem') {
          isWhole &&= item.sealed?.why === 'erased';
          noteProblem(item, this.counts, this.#options);
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
    await writeLoad(this.#database, {
      load,
      archive,
      file,
      // What could not be read in all its lines is tried again the next time.
      sha256: isWhole ? `${this.#refused > refusedBefore ? REFUSED : ''}${sha256}` : '',
      shape: this.#tables.shape,
      records: this.counts.records - before.records,
      sealed,
      destroyed: this.#opener?.destroyed ?? 0,
    });
    if (replaces.length > 0 && (await reviveDuplicates(this.#database))) this.revived = true;
  }

  /** Those that no load has: each event's rows are there once, however often it lies in archives. */
  async #take(records: readonly ArchiveRecordItem[], made: ShapedRows, load: number): Promise<void> {
    const keys = records.map(keyOf);
    const claimed = await claimEvents(this.#database, load, keys);
    this.counts.duplicates += records.length - claimed.size;
    const own = rowsOfClaimed(this.#shapes, made, records, keys, claimed);
    for (const { nth, ...reject } of own.rows.rejects) {
      const { file, line } = own.records[nth] as ArchiveRecordItem;
      this.counts.rejects += 1;
      this.#options.onReject({ ...reject, file, line });
    }
    const rows = await appendRows(this.#database, own.rows, load, this.#setsAside(own.records));
    for (const [table, count] of Object.entries(rows))
      this.counts.rows[table] = (this.counts.rows[table] ?? 0) + count;
    this.#shapes.release(own.rows);
  }

  #setsAside(records: readonly ArchiveRecordItem[]): OnRefused {
    return (table, line, reason) => {
      const { file, line: number } = recordOf(records, table, line);
      this.#refused += 1;
      this.counts.rejects += 1;
      this.#options.onReject({ table: table.name, code: 'refused', reason, file, line: number });
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

/** Counts and tells what could not be read. @throws MillraceError archive_sealed where there are no keys */
function noteProblem(
  { file, line, reason, sealed }: ArchiveItem & { kind: 'problem' },
  counts: StepCounts,
  { onProblem }: LoadOptions,
): void {
  if (sealed?.why === 'no_keys') throw new MillraceError('archive_sealed', `${file}: ${reason}`);
  if (sealed?.why === 'erased') {
    counts.erased += 1;
    return;
  }
  counts.problems += 1;
  onProblem(file, line, reason);
}
