import type { RecordOpener } from '../core/sealed-record.ts';
import type { ExportStep, StepSource } from './export-step.ts';
import { isStale } from './plan.ts';
import { placeOf, type SourceList } from './sources.ts';

/**
 * A step without rows that replaces steps whose sources an erasure has changed, and whose rows another program has written into its
 * own files (`OPTIMIZE`). These files cannot be found, so they stay, and only an erasure of the table itself removes rows from them.
 * @param rewritten steps whose files are not in their tables any more
 * @returns null when there is none
 */
export function adoption(
  number: number,
  rewritten: readonly ExportStep[],
  list: SourceList,
  opener: RecordOpener | undefined,
): ExportStep | null {
  const steps = rewritten.filter((step) => isStale(step, list, opener) && !isJoined(step, list));
  if (steps.length === 0) return null;
  return {
    step: number,
    replaces: steps.map(({ step }) => step),
    sources: steps.flatMap(({ sources }) => sources.flatMap((source) => asItIs(source, list))),
    files: [],
    keeps: steps.flatMap(({ files, keeps }) => [...keeps, ...files.map(({ file }) => file)]),
    removes: [],
    records: 0,
    rejects: 0,
    without_table: {},
    filled: {},
    types: {},
    problems: 0,
    erased: 0,
    sealed: steps.reduce((sum, { sealed }) => sum + sealed, 0),
    destroyed: opener?.destroyed ?? 0,
  };
}

/** True when a compaction has joined a source with others since: its rows will be exported with that file. */
function isJoined({ sources }: ExportStep, { gone }: SourceList): boolean {
  return sources.some((source) => gone.get(placeOf(source)) === 'joined');
}

function asItIs(source: StepSource, { present, missing, gone, roots }: SourceList): StepSource[] {
  const place = placeOf(source);
  if (roots.has(source.root) && gone.has(place)) return [];
  const sha256 = present.get(place) ?? missing.get(place)?.sha256 ?? source.sha256;
  return [{ ...source, sha256 }];
}
