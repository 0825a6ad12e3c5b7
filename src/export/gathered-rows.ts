import { ByteWriter } from '../lib/byte-writer.ts';
import { getOrMake } from '../lib/get-or-make.ts';
import { columnsOf, twinsOf } from '../warehouse/definition.ts';
import type { Tables } from '../warehouse/tables.ts';
import { packLines } from './ndjson-file.ts';
import type { GatheredValues } from '../parquet/column-values.ts';
import { RowColumns } from '../parquet/row-columns.ts';
import { encodeGroup } from '../parquet/row-group.ts';
import type { ColumnsOfRows, RowBatch } from './row-file.ts';
import type { Compression } from '../core/compression.ts';

/** Fewer bytes of values than this wait for others before they become a row group. */
const LEAST_GROUP = 1024 * 1024;

/** Rows of one table and partition, as lines. */
class RowLines {
  readonly text = new ByteWriter();
  rows = 0;

  add(lines: Uint8Array, rows: number): void {
    this.text.append(lines);
    this.rows += rows;
  }

  clear(): void {
    this.text.length = 0;
    this.rows = 0;
  }
}

type Gathered = RowLines | RowColumns;

/**
 * Rows of a few partitions, gathered until they are taken. Their buffers stay here, so that not all of them are made anew
 * for each unit.
 */
export class GatheredRows<G extends Gathered> {
  readonly #make: () => ReadonlyMap<string, G>;
  readonly #contentOf: (gathered: G) => RowBatch['content'];
  readonly #partitions = new Map<string, ReadonlyMap<string, G>>();
  readonly #spare: ReadonlyMap<string, G>[] = [];

  private constructor(
    tables: readonly string[],
    make: (table: string) => G,
    contentOf: (gathered: G) => RowBatch['content'],
  ) {
    this.#make = () => new Map(tables.map((table) => [table, make(table)]));
    this.#contentOf = contentOf;
  }

  static ofLines(tables: readonly string[], compression: Compression): GatheredRows<RowLines> {
    return new GatheredRows(
      tables,
      () => new RowLines(),
      ({ text }) => packLines(text.view(), compression),
    );
  }

  static ofColumns(
    names: readonly string[],
    tables: Tables,
    compression: Compression,
  ): GatheredRows<RowColumns> {
    const make = (name: string): RowColumns => {
      const { definition } = tables.entry(name);
      return new RowColumns(columnsOf(definition), twinsOf(definition));
    };
    return new GatheredRows(names, make, (columns) => columnsIn(columns, compression));
  }

  get partitions(): number {
    return this.#partitions.size;
  }

  /** Where rows of a partition go, by table. */
  of(folder: string): ReadonlyMap<string, G> {
    const known = this.#partitions.get(folder);
    if (known !== undefined) return known;
    const made = this.#spare.pop() ?? this.#make();
    this.#partitions.set(folder, made);
    return made;
  }

  /** The rows so far, in buffers of their own, in the order in which their partitions came. */
  take(): RowBatch[] {
    const batches: RowBatch[] = [];
    for (const [folder, tables] of this.#partitions) {
      for (const [table, gathered] of tables) {
        if (gathered.rows > 0)
          batches.push({ table, folder, rows: gathered.rows, content: this.#contentOf(gathered) });
        gathered.clear();
      }
      this.#spare.push(tables);
    }
    this.#partitions.clear();
    return batches;
  }
}

function columnsIn(rows: RowColumns, compression: Compression): ColumnsOfRows {
  const gathered = rows.gathered();
  if (rows.held >= LEAST_GROUP) return { group: encodeGroup(rows.columns, gathered, compression) };
  const copies = new Map<GatheredValues, GatheredValues>();
  const columns = gathered.map((values) => getOrMake(copies, values, () => copyOf(values)));
  return { columns, held: rows.held };
}

function copyOf(values: GatheredValues): GatheredValues {
  return {
    ...values,
    present: values.present.slice(),
    plain: new Uint8Array(values.plain),
    indexes: values.indexes?.slice() ?? null,
  };
}
