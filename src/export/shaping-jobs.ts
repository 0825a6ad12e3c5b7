import { readLine } from '../archive/read-line.ts';
import { parseEnvelope } from '../core/archive-record.ts';
import { columnsOf, type TableDefinition, twinsOf } from '../tables/definition.ts';
import type { OnExtraField, TableFields } from '../tables/learned/field-sums.ts';
import type { GatheredValues } from './parquet/column-values.ts';
import { mergeColumn } from './parquet/merge-columns.ts';
import { type EncodedGroup, encodeGroup } from './parquet/row-group.ts';
import type { RowBatch } from './row-file.ts';
import { type ExportReject, Rows, type RowsHost, type RowTerms } from './rows.ts';
import { entriesNamed, isEverything, isWanted, type Selection, takenBy } from './select.ts';
import type { Problem } from './source-bytes.ts';
import type { Unit } from './unit.ts';

/** The rows of a unit, and what was noticed. */
export interface ShapedUnit {
  readonly batches: readonly RowBatch[];
  /** Records that were wanted. */
  readonly records: number;
  readonly rejects: readonly ExportReject[];
  readonly problems: readonly Problem[];
  /** Types of events without a table, one for each event. */
  readonly withoutTable: readonly string[];
  readonly unknown: readonly Parameters<OnExtraField>[];
  /** What the rows had, by table. */
  readonly met: readonly TableFields[];
  /** The unit's buffer, to be used again. */
  readonly text: Uint8Array<ArrayBuffer>;
}

export interface UnitTerms extends RowTerms {
  /** As `entriesNamed` reads it. */
  readonly table: string;
  readonly selection: Selection;
  /** Sealed lines were opened; those that could not be are empty. */
  readonly opened?: boolean;
}

/** Makes a function that shapes units in the calling thread. The same unit always has the same rows. */
function unitShaper(terms: UnitTerms): (unit: Unit) => ShapedUnit {
  const { tables, table, selection, opened = false } = terms;
  const entries = entriesNamed(tables, table);
  const isAll = isEverything(selection);
  const takes = takenBy(tables, entries);
  let [rejects, problems]: [ExportReject[], Problem[]] = [[], []];
  let [withoutTable, unknown]: [string[], ShapedUnit['unknown'][number][]] = [[], []];
  const host: RowsHost = {
    onReject: (reject) => rejects.push(reject),
    onUnknown: (...field) => unknown.push(field),
    onWithoutTable: (type) => withoutTable.push(type),
  };
  const rowsOf = entries.map((entry) => {
    return { entry, rows: new Rows({ ...terms, table: entry.definition.name }, host) };
  });
  const alone = rowsOf.length === 1 ? rowsOf[0]?.rows : undefined;
  return (unit) => {
    [rejects, problems, withoutTable, unknown] = [[], [], [], []];
    let records = 0;
    forEachLine(unit, (file, line, text) => {
      if (opened && text.length === 0) return;
      if (isAll && alone?.addPlain(text) === true) {
        records += 1;
        return;
      }
      const item = readLine(file, line, text, parseEnvelope);
      if (item.kind === 'problem') problems.push(item);
      else if (isWanted(item.record, selection, takes)) {
        records += 1;
        for (const { entry, rows } of rowsOf) if (tables.takes(entry, item.record.event_type)) rows.add(item);
      }
    });
    const taken = rowsOf.map(({ rows }) => rows.take());
    const [batches, met] = [taken.flatMap((one) => one.batches), taken.flatMap((one) => one.met)];
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

/** Work for any thread: shape a unit, or make one row group of rows of several units. */
export type Job =
  | { readonly unit: Unit }
  | { readonly table: string; readonly parts: readonly (readonly GatheredValues[])[] };

export type Outcome = { readonly shaped: ShapedUnit } | { readonly group: EncodedGroup };

/** Data of a thread: the terms, with the tables as plain objects. */
export type ThreadData = Omit<UnitTerms, 'tables'> & { readonly documents: readonly TableDefinition[] };

/** Makes a function that does jobs in the calling thread. */
export function jobRunner(terms: UnitTerms): (job: Job) => Outcome {
  const shape = unitShaper(terms);
  return (job) => {
    if ('unit' in job) return { shaped: shape(job.unit) };
    const { definition } = terms.tables.entry(job.table);
    const columns = columnsOf(definition);
    const twins = twinsOf(definition);
    const merged: GatheredValues[] = [];
    for (const [at, { type }] of columns.entries()) {
      const parts = job.parts.map((part) => part[at] as GatheredValues);
      merged.push(merged[twins[at] as number] ?? mergeColumn(type, parts));
    }
    return { group: encodeGroup(columns, merged, terms.compression) };
  };
}

/** The large buffers of an outcome, which are transferred to another thread instead of copied. */
export function buffersOf(outcome: Outcome): ArrayBuffer[] {
  if ('group' in outcome) return [outcome.group.bytes.buffer];
  const { text, batches } = outcome.shaped;
  const large = batches.flatMap(({ content }) => {
    if ('lines' in content) return [content.lines.buffer];
    return 'group' in content ? [content.group.bytes.buffer] : [];
  });
  return [text.buffer, ...large];
}
