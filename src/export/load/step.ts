import { readInChunks } from '../../archive/read.ts';
import type { ArchiveItem } from '../../archive/read-line.ts';
import { parseRecord } from '../../core/archive-record.ts';
import {
  claimEvents,
  nextLoad,
  REFUSED,
  removeLoads,
  reviveDuplicates,
  writeLoad,
} from '../../tables/database/ledger.ts';
import { removeVanished } from '../../tables/database/pulls.ts';
import { keyOf, Shapes, type ShapedRows } from '../../tables/database/shapes.ts';
import type { TableFields } from '../../tables/learned/field-sums.ts';
import type { Source } from '../archive-files.ts';
import { isErased } from '../source-bytes.ts';
import { appendRows } from './append.ts';
import type { BackfillSource } from './archives.ts';
import { BackfillRows } from './backfill-rows.ts';
import { addCounts, type LoadTerms, noCounts } from './options.ts';
import type { PlannedFile } from './plan.ts';

/** Records, and bytes of them, whose rows are sent to the database together. */
const BATCH_RECORDS = 2000;
const BATCH_BYTES = 4 * 1024 * 1024;

type ArchiveRecordItem = ArchiveItem & { kind: 'record' };

/** Loads files of archives in one transaction of the caller's. */
export class LoadStep {
  readonly counts = noCounts();
  /** Bytes of records so far. */
  bytes = 0;
  /** Files that were loaded before have to be loaded again. */
  revived = false;
  /** The first of its loads. */
  #first: number | null = null;
  readonly #terms: LoadTerms;
  readonly #shapes: Shapes;
  /** Rows that the database refused. */
  #refused = 0;

  constructor(terms: LoadTerms) {
    this.#terms = terms;
    this.#shapes = new Shapes(terms.tables.known, terms.tables.entries, terms.database, terms.options);
  }

  /** True once it has pulls, which concern the rows of all loads. */
  get searchesAll(): boolean {
    return this.#first === 0;
  }

  /** What the rows had, by table. */
  met(): TableFields[] {
    return this.#shapes.met();
  }

  /** Loads a file, or the files of a backfill, and removes its earlier loads. */
  async load({ archive, source, replaces }: PlannedFile, onBatch: () => void): Promise<void> {
    const { file, sha256 } = source;
    const { database, tables, opener } = this.#terms;
    if (replaces.length > 0) await removeLoads(database, tables.names, replaces);
    const load = await nextLoad(database);
    this.#first ??= load;
    const before = { records: this.counts.records, problems: this.counts.problems, refused: this.#refused };
    const sealed =
      'rows' in source
        ? await this.#loadBackfill(source, load, onBatch)
        : await this.#loadRecords(source, load, onBatch);
    const refused = this.#refused > before.refused ? REFUSED : '';
    await writeLoad(database, {
      load,
      archive,
      file,
      // A file with unreadable lines is loaded again by the next run.
      sha256: this.counts.problems > before.problems ? '' : `${refused}${sha256}`,
      shape: tables.shape,
      records: this.counts.records - before.records,
      sealed,
      destroyed: opener?.destroyed ?? 0,
    });
    this.counts.files += 1;
    if (replaces.length === 0) return;
    this.counts.replaced += 1;
    if (await reviveDuplicates(database)) this.revived = true;
  }

  async #loadBackfill(source: BackfillSource, load: number, onBatch: () => void): Promise<0> {
    const rows = new BackfillRows(this.#terms, source.root, load);
    await rows.load(source, onBatch);
    addCounts(this.counts, rows.counts);
    this.#refused += rows.counts.rejects;
    // Its pulls concern the rows of all loads.
    this.#first = 0;
    return 0;
  }

  /** @returns number of sealed records that were opened */
  async #loadRecords({ root, file }: Source, load: number, onBatch: () => void): Promise<number> {
    const { opener, options } = this.#terms;
    const { places, signal } = options;
    let batch: ArchiveRecordItem[] = [];
    let bytes = 0;
    let sealed = 0;
    // While the database takes one batch, the next is read and shaped.
    let taken = Promise.resolve();
    const send = async (): Promise<void> => {
      const records = batch;
      batch = [];
      bytes = 0;
      const made = this.#shapes.shape(records);
      await taken;
      onBatch();
      taken = this.#take(records, made, load);
      // The next `await` throws it.
      taken.catch(() => undefined);
    };
    try {
      for await (const items of readInChunks(places.at(root), file, parseRecord, { signal, opener }))
        for (const item of items) {
          if (item.kind === 'problem') {
            this.#note(item);
            continue;
          }
          if (item.sealed) sealed += 1;
          this.counts.records += 1;
          this.bytes += item.text.length;
          bytes += item.text.length;
          batch.push(item);
          if (batch.length >= BATCH_RECORDS || bytes >= BATCH_BYTES) await send();
        }
      if (batch.length > 0) await send();
    } finally {
      // The connection runs one statement at a time.
      await taken.catch(() => undefined);
    }
    await taken;
    return sealed;
  }

  /** Removes the rows of the loaded files that had vanished at the service before. */
  async finish(): Promise<void> {
    const { database, tables } = this.#terms;
    if (this.#first !== null) this.counts.vanished += await removeVanished(database, tables, this.#first);
  }

  #note(problem: ArchiveItem & { kind: 'problem' }): void {
    if (isErased(problem)) {
      this.counts.erased += 1;
      return;
    }
    this.counts.problems += 1;
    this.#terms.options.onProblem(problem.file, problem.line, problem.reason);
  }

  /** Sends the rows of the events that no load has yet, so that each event's rows are there once. */
  async #take(records: readonly ArchiveRecordItem[], made: ShapedRows, load: number): Promise<void> {
    const { database, options } = this.#terms;
    const keys = records.map(keyOf);
    const claimed = await claimEvents(database, load, keys);
    this.counts.duplicates += records.length - claimed.size;
    let [rows, own] = [made, records];
    if (claimed.size < records.length) {
      own = records.filter((_, nth) => claimed.delete(keys[nth] ?? ''));
      rows = this.#shapes.shape(own);
    }
    for (const { nth, ...reject } of rows.rejects) {
      const { file, line } = own[nth] as ArchiveRecordItem;
      this.counts.rejects += 1;
      options.onReject({ ...reject, file, line });
    }
    for (const batch of rows.tables) {
      const { name } = batch.definition;
      const refused = await appendRows(database, batch, load, (row, reason) => {
        const { file, line } = own[batch.ends.findIndex((end) => end > row)] as ArchiveRecordItem;
        options.onReject({ table: name, code: 'refused', reason, file, line });
      });
      this.#refused += refused;
      this.counts.rejects += refused;
      this.counts.rows[name] = (this.counts.rows[name] ?? 0) + batch.rows - refused;
    }
  }
}
