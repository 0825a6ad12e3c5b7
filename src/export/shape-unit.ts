import { readLine } from '../archive/read-line.ts';
import { parseEnvelope } from '../core/archive-record.ts';
import type { ColumnType } from '../tables/definition.ts';
import type { TableFields } from '../tables/learned/field-sums.ts';
import type { RowBatch } from './row-file.ts';
import { type ExportReject, Rows, type RowTerms } from './rows.ts';
import { isEverything, isWanted, type Selection } from './select.ts';
import type { Problem } from './source-bytes.ts';
import type { Unit } from './unit.ts';

/** What came of a unit. */
export interface ShapedUnit {
  readonly batches: readonly RowBatch[];
  /** Records that were wanted. */
  readonly records: number;
  readonly rejects: readonly ExportReject[];
  readonly problems: readonly Problem[];
  /** Event types, each as often as such an event had no table. */
  readonly withoutTable: readonly string[];
  readonly unknown: readonly {
    readonly table: string;
    readonly path: string;
    readonly type: ColumnType | null;
  }[];
  /** What the rows had, by table. */
  readonly met: readonly TableFields[];
  /** The unit's, to be used again. */
  readonly text: Uint8Array<ArrayBuffer>;
}

export interface UnitTerms extends RowTerms {
  readonly selection: Selection;
  /** Lines were opened before; those that could not be are empty. */
  readonly opened?: boolean;
}

/** Makes a function that shapes units in the calling thread. What it makes of a unit follows from the unit alone. */
export function unitShaper(terms: UnitTerms): (unit: Unit) => ShapedUnit {
  const { tables, table, selection, opened = false } = terms;
  const entry = tables.entry(table);
  const isAll = isEverything(selection);
  const takes = (type: string): boolean => tables.takes(entry, type);
  let [rejects, problems]: [ExportReject[], Problem[]] = [[], []];
  let [withoutTable, unknown]: [string[], ShapedUnit['unknown'][number][]] = [[], []];
  const rows = new Rows(terms, {
    onReject: (reject) => rejects.push(reject),
    onUnknown: (left, path, type) => unknown.push({ table: left, path, type }),
    onWithoutTable: (type) => withoutTable.push(type),
  });
  return (unit) => {
    [rejects, problems, withoutTable, unknown] = [[], [], [], []];
    let records = 0;
    forEachLine(unit, (file, line, text) => {
      if (opened && text.length === 0) return;
      if (isAll && rows.addPlain(text)) {
        records += 1;
        return;
      }
      const item = readLine(file, line, text, parseEnvelope);
      if (item.kind === 'problem') problems.push(item);
      else if (isWanted(item.record, selection, takes)) {
        records += 1;
        rows.add(item);
      }
    });
    const { batches, met } = rows.take();
    return { batches, records, rejects, problems, withoutTable, unknown, met, text: unit.text };
  };
}

function forEachLine(
  { text, ends, stretches }: Unit,
  take: (file: string, line: number, text: Buffer) => void,
): void {
  const bytes = Buffer.from(text.buffer);
  let from = 0;
  for (const [nth, { file, from: first, number }] of stretches.entries()) {
    const last = stretches[nth + 1]?.from ?? ends.length;
    for (let at = first; at < last; at += 1) {
      const to = ends[at] as number;
      take(file, number + at - first, bytes.subarray(from, to));
      from = to + 1;
    }
  }
}
