import { getOrMake } from '../lib/get-or-make.ts';
import { allColumnsOf, columnsOf, type TableDefinition, twinsOf } from '../tables/definition.ts';
import { RowLines } from '../tables/shape/row-lines.ts';
import { packLines } from './ndjson-file.ts';
import type { GatheredValues } from './parquet/column-values.ts';
import { RowColumns } from './parquet/row-columns.ts';
import { encodeGroup } from './parquet/row-group.ts';
import type { ColumnsOfRows, RowBatch } from './row-file.ts';
import type { Compression } from '../core/compression.ts';
import type { Tables } from '../tables/tables.ts';

/** Fewer bytes of values than this are joined with others before they become a row group. */
const LEAST_GROUP = 1024 * 1024;

export interface GatheredTerms {
  readonly tables: Tables;
  /** It and the tables nested in it. */
  readonly table: string;
  readonly format: 'ndjson' | 'parquet';
  readonly compression: Compression;
}

/** Rows of one table and partition. */
type Gathered = RowLines | RowColumns;

/** Rows of a few partitions, gathered as lines or as columns until they are taken. Their buffers are used again for the next unit. */
export class GatheredRows {
  readonly #make: () => ReadonlyMap<string, Gathered>;
  readonly #compression: Compression;
  readonly #partitions = new Map<string, ReadonlyMap<string, Gathered>>();
  readonly #spare: ReadonlyMap<string, Gathered>[] = [];

  constructor({ tables, table, format, compression }: GatheredTerms) {
    const definitions = tables.withNested(table).map((name) => tables.entry(name).definition);
    const make = (definition: TableDefinition): Gathered => {
      if (format === 'ndjson') return new RowLines(definition);
      const all = allColumnsOf(definition);
      return new RowColumns(all, columnsOf(definition), twinsOf(definition, all));
    };
    this.#make = () => new Map(definitions.map((definition) => [definition.name, make(definition)]));
    this.#compression = compression;
  }

  get partitions(): number {
    return this.#partitions.size;
  }

  /** The targets of a partition's rows, by table. */
  of(folder: string): ReadonlyMap<string, Gathered> {
    return getOrMake(this.#partitions, folder, () => this.#spare.pop() ?? this.#make());
  }

  /** Takes the rows so far, in buffers of their own, in the order in which their partitions came. */
  take(): RowBatch[] {
    const batches: RowBatch[] = [];
    for (const [folder, tables] of this.#partitions) {
      for (const [table, gathered] of tables) {
        if (gathered.rows > 0) {
          const content =
            gathered instanceof RowLines
              ? packLines(gathered.view(), this.#compression)
              : columnsIn(gathered, this.#compression);
          batches.push({ table, folder, rows: gathered.rows, content });
        }
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
