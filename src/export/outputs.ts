import { join } from 'node:path';
import { DATA_EXTENSIONS } from '../core/archive.ts';
import { HashedFile } from '../lib/new-file.ts';
import type { ExportStep } from './export-step.ts';
import type { GatheredTerms } from './gathered-rows.ts';
import { NdjsonFile } from './ndjson-file.ts';
import type { EncodedGroup } from './parquet/row-group.ts';
import type { GatheredValues } from './parquet/column-values.ts';
import type { RowFile, RowBatch } from './row-file.ts';
import { entriesNamed } from './select.ts';

/** Most open files; then the least recently used one is completed, and its partition continues in another file. */
const OPEN_FILES = 32;
/** With more tables, this many for each table, up to a limit. */
const [OPEN_OF_TABLE, MOST_OPEN] = [4, 256];
/** Bytes of rows in memory over all files; then the file with most of them writes its row group early. */
const HELD = 32 * 1024 * 1024;
/** Bytes of rows that are being written over all files; then `add` waits for them. */
const WRITING = 32 * 1024 * 1024;

/** A complete file of an export, as a line of `_export.jsonl` lists it. */
export type WrittenFile = ExportStep['files'][number];

export interface OutputsOptions extends GatheredTerms {
  /** Folder of unfinished files. */
  readonly work: string;
  readonly step: number;
  /** As `entriesNamed` reads it. */
  readonly table: string;
  /** Makes one row group of rows of several batches. */
  join(table: string, parts: readonly (readonly GatheredValues[])[]): Promise<EncodedGroup>;
}

interface Open {
  readonly name: string;
  readonly table: string;
  readonly file: RowFile;
}

/** The files of one step, one for each table and partition, in bounded memory for any number of partitions. */
export class Outputs {
  readonly #options: OutputsOptions;
  /** By table and partition, least recently used first. */
  readonly #open = new Map<string, Open>();
  readonly #made = new Map<string, number>();
  readonly #written: WrittenFile[] = [];
  readonly #mostOpen: number;

  constructor(options: OutputsOptions) {
    this.#options = options;
    const tables = entriesNamed(options.tables, options.table).length;
    this.#mostOpen = Math.max(OPEN_FILES, Math.min(tables * OPEN_OF_TABLE, MOST_OPEN));
  }

  /** Takes rows; their buffers no longer belong to the caller. */
  async add(batch: RowBatch): Promise<void> {
    const { table, folder } = batch;
    const place = folder === '' ? table : `${table}/${folder}`;
    const open = this.#open.get(place) ?? (await this.#create(table, place));
    this.#open.delete(place);
    this.#open.set(place, open);
    await open.file.add(batch);
    await this.#relieve();
  }

  /** Completes the files and returns them in order of their names. They are still in the folder of unfinished files. */
  async finish(): Promise<WrittenFile[]> {
    for (const place of this.#open.keys()) await this.#finish(place);
    return this.#written.sort((a, b) => (a.file < b.file ? -1 : 1));
  }

  async abandon(): Promise<void> {
    for (const { file } of this.#open.values()) await file.abandon();
    this.#open.clear();
  }

  async #create(table: string, place: string): Promise<Open> {
    const [oldest] = this.#open.keys();
    if (oldest !== undefined && this.#open.size >= this.#mostOpen) await this.#finish(oldest);
    const { step, work, format, compression, tables, join: joined } = this.#options;
    const nth = (this.#made.get(place) ?? 0) + 1;
    this.#made.set(place, nth);
    const stem = `part-${String(step).padStart(6, '0')}${nth === 1 ? '' : `-${nth}`}`;
    // The table of rejects has no definition.
    const definition = format === 'parquet' ? tables.get(table)?.definition : undefined;
    const extension = definition === undefined ? DATA_EXTENSIONS[compression] : '.parquet';
    const name = `${place}/${stem}${extension}`;
    const create = (): Promise<HashedFile> => HashedFile.create(join(work, temporaryName(name)));
    if (definition === undefined) return { name, table, file: new NdjsonFile(await create(), compression) };
    const { ParquetFile } = await import('./parquet-file.ts');
    return { name, table, file: new ParquetFile(create, definition, (parts) => joined(table, parts)) };
  }

  async #finish(place: string): Promise<void> {
    const open = this.#open.get(place);
    if (open === undefined) return;
    this.#open.delete(place);
    const { name, table, file } = open;
    const facts = await file.finish();
    if (facts !== null) this.#written.push({ file: name, table, rows: file.rows, ...facts });
  }

  /** Decides by the rows alone, never by the speed of writing, so that the same rows give the same files. */
  async #relieve(): Promise<void> {
    const files = [...this.#open.values()].map(({ file }) => file);
    const sum = (of: (file: RowFile) => number): number => files.reduce((all, file) => all + of(file), 0);
    if (sum(({ held }) => held) >= HELD) {
      const [largest] = files.sort((a, b) => b.held - a.held);
      await largest?.relieve();
    }
    if (sum(({ writing }) => writing) < WRITING) return;
    for (const file of files) await file.settled();
  }
}

/** Name of a file in the folder of unfinished files. */
export function temporaryName(file: string): string {
  return encodeURIComponent(file);
}
