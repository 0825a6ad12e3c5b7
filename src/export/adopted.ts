import { nameOf } from '../archive/place.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import type { ExportStep } from './export-step.ts';
import { isStale } from './plan.ts';
import type { SourceList } from './sources.ts';

type StepSource = ExportStep['sources'][number];

/**
 * The step that takes the place of steps whose sources an erasure has changed, and whose rows another program has written into files
 * of its own (`OPTIMIZE`): nothing tells which these are, so they stay, and the erasure of the table itself takes rows out of them.
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

/** Whether some of its rows are in a file that a compaction has made since: they would be exported once more with that. */
function isJoined({ sources }: ExportStep, { gone }: SourceList): boolean {
  return sources.some(({ root, file }) => gone.get(nameOf(root, file)) === 'joined');
}

function asItIs(source: StepSource, { present, missing, gone, roots }: SourceList): StepSource[] {
  const place = nameOf(source.root, source.file);
  if (roots.has(source.root) && gone.has(place)) return [];
  const sha256 = present.get(place) ?? missing.get(place)?.sha256 ?? source.sha256;
  return [{ ...source, sha256 }];
}
