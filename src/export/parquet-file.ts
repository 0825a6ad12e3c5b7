import type { RowGroup } from 'hyparquet';
import { asBuffer } from '../lib/byte-writer.ts';
import { columnsOf, type TableDefinition } from '../tables/definition.ts';
import type { HashedFile } from '../lib/new-file.ts';
import { RowFile, type RowBatch } from './row-file.ts';
import type { GatheredValues } from './parquet/column-values.ts';
import { footerOf, MAGIC } from './parquet/footer.ts';
import { type EncodedGroup, placed } from './parquet/row-group.ts';

/** A row group of several batches is written when it has so many bytes of values as JSON, or so many rows. */
const GROUP_BYTES = 16 * 1024 * 1024;
const GROUP_ROWS = 128 * 1024;

/** Makes one row group of rows of several batches. */
export type JoinColumns = (parts: readonly (readonly GatheredValues[])[]) => Promise<EncodedGroup>;

/** Rows as a Parquet file. Batches that are too small for a row group are joined with others. */
export class ParquetFile extends RowFile {
  readonly #create: () => Promise<HashedFile>;
  readonly #definition: TableDefinition;
  readonly #join: JoinColumns;
  readonly #groups: RowGroup[] = [];
  #out: HashedFile | null = null;
  #parts: (readonly GatheredValues[])[] = [];
  #heldRows = 0;

  /** @param create makes the empty file, when there are rows */
  constructor(create: () => Promise<HashedFile>, definition: TableDefinition, join: JoinColumns) {
    super();
    this.#create = create;
    this.#definition = definition;
    this.#join = join;
  }

  async add({ table, rows, content }: RowBatch): Promise<void> {
    if ('lines' in content) throw new TypeError(`${table} takes no lines`);
    if ('group' in content) {
      await this.relieve();
      this.rows += rows;
      return this.#begin(content.group.bytes.length, Promise.resolve(content.group));
    }
    this.rows += rows;
    this.#heldRows += rows;
    this.held += content.held;
    this.#parts.push(content.columns);
    if (this.held >= GROUP_BYTES || this.#heldRows >= GROUP_ROWS) await this.relieve();
  }

  async relieve(): Promise<void> {
    if (this.#heldRows === 0) return;
    const [parts, held] = [this.#parts, this.held];
    this.#parts = [];
    this.#heldRows = 0;
    this.held = 0;
    await this.#begin(held, this.#join(parts));
  }

  async finish(): Promise<{ bytes: number; sha256: string } | null> {
    await this.relieve();
    await this.settled();
    const out = this.#out;
    if (out === null) return null;
    await out.write(footerOf(columnsOf(this.#definition), this.#groups));
    await out.finish();
    return out.facts();
  }

  protected async remove(): Promise<void> {
    await this.#out?.abandon();
  }

  /** Begins to write a row group, after the last one. */
  async #begin(bytes: number, group: Promise<EncodedGroup>): Promise<void> {
    // The next call throws it.
    group.catch(() => undefined);
    await this.begin(bytes, () => this.#write(group));
  }

  async #write(encoding: Promise<EncodedGroup>): Promise<void> {
    const group = await encoding;
    if (this.#out === null) {
      this.#out = await this.#create();
      await this.#out.write(MAGIC);
    }
    this.#groups.push(placed(group.meta, this.#out.bytes));
    await this.#out.write(asBuffer(group.bytes));
  }
}
