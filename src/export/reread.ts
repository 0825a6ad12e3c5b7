import { dirname } from 'node:path';
import type { ExportStep } from './export-step.ts';

/**
 * Whether a step that could not read all of its sources is to be replaced by what reading them again has made: not by the
 * same, which consumers would load for nothing, nor where less of a source can be read than then.
 * @param passedOver its files never came to be
 */
export function isBetter(step: ExportStep, made: ExportStep, passedOver: ExportStep | null): boolean {
  if (passedOver?.step === step.step) return true;
  const isWorse = made.sources.some(
    ({ problems, records = 0 }, nth) => problems > 0 && records < (step.sources[nth]?.records ?? 0),
  );
  return !isWorse && contentOf(step) !== contentOf(made);
}

function contentOf({ sources, files }: ExportStep): string {
  return JSON.stringify([
    sources.map(({ problems, records }) => [problems, records]),
    files.map(({ file, sha256 }) => `${dirname(file)} ${sha256}`).toSorted(),
  ]);
}
