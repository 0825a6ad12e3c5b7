import { columnsOf, type TableDefinition, twinsOf } from '../tables/definition.ts';
import type { GatheredValues } from './parquet/column-values.ts';
import { mergeColumn } from './parquet/merge-columns.ts';
import { type EncodedGroup, encodeGroup } from './parquet/row-group.ts';
import { type ShapedUnit, unitShaper, type UnitTerms } from './shape-unit.ts';
import type { Unit } from './unit.ts';

/** What can be done in any thread: shape a unit, or make one row group of rows that were gathered apart. */
export type Job =
  | { readonly unit: Unit }
  | { readonly table: string; readonly parts: readonly (readonly GatheredValues[])[] };

export type Outcome = { readonly shaped: ShapedUnit } | { readonly group: EncodedGroup };

/** What a thread is started with: the terms, with the tables as plain objects. */
export type ThreadData = Omit<UnitTerms, 'tables'> & { readonly documents: readonly TableDefinition[] };

export function shapesJobs(terms: UnitTerms): (job: Job) => Outcome {
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

/** The large buffers of an outcome, which are not copied to another thread but go there. */
export function handedOver(outcome: Outcome): ArrayBuffer[] {
  if ('group' in outcome) return [outcome.group.bytes.buffer];
  const { text, batches } = outcome.shaped;
  const large = batches.flatMap(({ content }) => {
    if ('lines' in content) return [content.lines.buffer];
    return 'group' in content ? [content.group.bytes.buffer] : [];
  });
  return [text.buffer, ...large];
}
